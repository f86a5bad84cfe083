"""Nodes of a fleet as processes, and what stands between them and the store."""

import json
import os
import random
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy

#: The token of the admin ports.
TOKEN = "of-a-test"

#: Seconds until a node serves.
READY_SECONDS_MAX = 60

#: Where a store of objects is told to a server, and what stands before HOST:PORT there.
STORE_ADDRESSES = {"HELENUS_BUCKET_ENDPOINT": "http://", "AZURITE_BLOB_STORAGE_URL": "http://", "STORAGE_EMULATOR_HOST": ""}


def free_ports(count):
    """Ports that are free on all addresses of the nodes."""
    while True:
        first = random.SystemRandom().randrange(24000, 27000)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("", port))
        except OSError:
            continue
        return range(first, first + count)


def faketime():
    """libfaketime, or None."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class Node:
    """One process of the fleet."""

    def __init__(self, program, number, ports, folder, bucket):
        self.program, self.number, self.folder, self.bucket = program, number, folder, bucket
        self.address = f"127.0.0.{number}"
        self.cql, self.fleet, self.admin = ports
        self.process = None
        self.clusters = []
        #: Where the log of the process that runs begins.
        self.begins = 0
        #: Seconds from the machine's clock.
        self.clock_offset_seconds = 0
        #: Of a process that stands between; None: nothing does.
        self.links = self.connect = None
        self.ports_of_links = {}

    @property
    def log(self):
        return self.folder / f"log-{self.number}"

    def command(self):
        command = [self.program, "--data", self.bucket, "--listen", f"{self.address}:{self.cql}"]
        command += ["--fleet-listen", f"{self.address}:{self.fleet}", "--node", f"n{self.number}"]
        return [*command, "--admin-listen", f"{self.address}:{self.admin}", "--admin-token", TOKEN]

    def put_behind(self, links, connect, nodes):
        """Links stand between this node and the store, and, with the library `connect`, between it and the others. It is not started yet."""
        self.links, self.connect = links, connect
        for name, before in STORE_ADDRESSES.items():
            if name in os.environ:
                port = links.forward(self.to_store, "127.0.0.1", os.environ[name].removeprefix(before))
                self.ports_of_links[name] = f"{before}127.0.0.1:{port}"
        if connect:
            to = [node for node in nodes if node is not self]
            ports = {node: links.forward(self.to(node), node.address, f"{node.address}:{node.fleet}") for node in to}
            self.ports_of_links["COMPAT_LINKS"] = ",".join(f"{node.address}:{node.fleet}={port}" for node, port in ports.items())

    @property
    def to_store(self):
        """The name of the link to the store."""
        return f"{self.number} to the store"

    def to(self, node):
        """The name of the link by which it connects to another node."""
        return f"{self.number} to {node.number}"

    def environment(self):
        preloaded = [str(self.connect)] if self.connect else []
        more = dict(self.ports_of_links)
        if self.clock_offset_seconds:
            preloaded.append(str(faketime()))
            # Time that passes is not what jumps.
            more |= {"FAKETIME": f"{self.clock_offset_seconds:+}", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        if preloaded:
            more["LD_PRELOAD"] = ":".join(preloaded)
        return os.environ | more

    def start(self):
        ready = self.folder / f"ready-{self.number}"
        ready.unlink(missing_ok=True)
        log = self.log.open("a")
        self.begins = self.log.stat().st_size
        # It ends with this run, however that ends.
        command = [*self.command(), "--ready-file", str(ready), "--exit-with-stdin"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env=self.environment())
        begun = time.monotonic()
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() - begun > READY_SECONDS_MAX:
                raise SystemExit(f"node {self.number} does not serve:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def status(self):
        """What `helenus status` prints of it."""
        command = [self.program, "status", "--json", "--admin-listen", f"{self.address}:{self.admin}"]
        return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    def forget(self, name):
        """Asks it to forget a node. Returns the status of the answer."""
        url = f"http://{self.address}:{self.admin}/api/nodes/{name}"
        request = urllib.request.Request(url, method="DELETE", headers={"Authorization": f"Bearer {TOKEN}"})
        try:
            return urllib.request.urlopen(request).status
        except urllib.error.HTTPError as refused:
            return refused.code

    def signal(self, which):
        self.process.send_signal(which)

    def end(self):
        self.process.wait(timeout=30)

    def owns(self):
        """Whether the log of its process says last that it owns the stores."""
        text = self.log.read_text()[self.begins :]
        return text.rfind("this node owns the stores") > text.rfind("does not own the stores any more")

    def session(self, level=ConsistencyLevel.QUORUM, connect_seconds=5):
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([self.address]),
            request_timeout=30,
            retry_policy=FallthroughRetryPolicy(),
            consistency_level=level,
            serial_consistency_level=ConsistencyLevel.SERIAL,
        )
        cluster = Cluster(
            [self.address],
            port=self.cql,
            protocol_version=4,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ConstantReconnectionPolicy(0.2, None),
            connect_timeout=connect_seconds,
        )
        self.clusters.append(cluster)
        return cluster.connect()


def owner_of(nodes):
    return next((node for node in nodes if node.owns()), None)
