// Data from the service: JSON, and server-sent events. Both are read by fetch, because EventSource can send no key.

const STORED = "regretless-key";

export class KeyNeeded extends Error {}

export function setKey(key) {
  sessionStorage.setItem(STORED, key);
}

async function ask(path, signal) {
  const key = sessionStorage.getItem(STORED);
  const response = await fetch(path, { signal, cache: "no-store", headers: key ? { authorization: `Bearer ${key}` } : {} });
  if (response.status === 401 || response.status === 403) throw new KeyNeeded();
  if (!response.ok) throw new Error(`${path}: status ${response.status}`);
  return response;
}

export async function json(path) {
  return (await ask(path)).json();
}

// Call `update` for each event named update, until the stream ends or fails.
export async function events(path, update, opened) {
  const quiet = new AbortController(); // the service sends something each second
  let timer = setTimeout(() => quiet.abort(), 15000);
  try {
    const response = await ask(path, quiet.signal);
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), 15000);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const lines = block.split("\n");
        if (!lines.includes("event: update")) continue;
        update(JSON.parse(lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n")));
      }
    }
  } finally {
    clearTimeout(timer);
  }
}
