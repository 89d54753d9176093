"""A process that has everything imported and compiled, and forks services that die where they are told to.

It reads one JSON object per line, with log, snapshots, port, point and after, and prints the number of the process.
The service kills itself by SIGKILL when it reaches `point` for the `after`-th time; an empty point means never.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile

from games import CLASSES, COLUMNS, LOW

from regretless.serve import ModelSpec, Service, snapshots
from regretless.serve.server import run


def serve(told):
    left = told["after"]

    def reached(step):
        nonlocal left
        if step == told["point"]:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    if told["point"] == "file":  # between the writing of a snapshot and its name
        fsync = os.fsync
        snapshots.os.fsync = lambda file: (reached("file"), fsync(file))
    options = {"snapshots": told["snapshots"], "snapshot_every": 25, "reached": reached}
    with Service(told["log"], **options) as service:
        service.add_model(ModelSpec.of(LOW, COLUMNS, CLASSES))
        run(service, port=told["port"])


def main():
    with tempfile.TemporaryDirectory() as folder, Service(f"{folder}/log.db") as service:
        service.add_model(ModelSpec.of(LOW, COLUMNS, CLASSES)).warm_up()
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            status = 1
            try:
                serve(json.loads(line))
                status = 0
            finally:
                os._exit(status)
        print(child, flush=True)


main()
