// A table per model, from /models.
async function show() {
  const response = await fetch("/models");
  const place = document.getElementById("models");
  place.replaceChildren();
  for (const model of await response.json()) {
    const title = document.createElement("h2");
    title.textContent = `${model.name}: ${model.recipe}`;
    const table = document.createElement("table");
    for (const [name, value] of Object.entries(model.summary)) {
      const row = table.insertRow();
      row.insertCell().textContent = name.replaceAll("_", " ");
      row.insertCell().textContent = value === null ? "" : Number(value.toPrecision(5));
    }
    place.append(title, table);
  }
}
show();
setInterval(show, 2000);
