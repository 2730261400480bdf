"""A process that looks like a model server from outside.

`python -m tests.stub_vllm --port N [--when FILE] [--say TEXT]` answers /health, from when the file is there, or with
--say prints that as its log and ends, as a server does that cannot start. Like vLLM it has a process of its own beside
the one that listens.
"""

import argparse
import multiprocessing
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


def engine() -> None:
    while True:
        time.sleep(60)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--say", default="")
    parser.add_argument("--when", default="")
    options, _ = parser.parse_known_args()
    if options.say:
        print(options.say, flush=True)
        sys.exit(1)
    while options.when and not Path(options.when).exists():
        time.sleep(0.05)
    listening = HTTPServer(("127.0.0.1", options.port), Health)
    worker = multiprocessing.get_context("spawn").Process(target=engine, name="vllm-engine")
    worker.start()
    print(f"worker {worker.pid}", flush=True)
    listening.serve_forever()
