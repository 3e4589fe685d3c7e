"""One JVM that runs Kafka's command line tools one after the other: to start a JVM takes ten times as long as what a tool then does."""

import os
import subprocess
import tempfile
import threading
import time
from typing import Any

from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway, find_jar_path
from py4j.protocol import Py4JJavaError

_START_SECONDS = 300


class _Ending:
    """Stands in for the end of the JVM with which a tool tells its exit code: what the tool does in that thread ends instead."""

    def __init__(self, printed: Any) -> None:
        self._printed = printed
        self.status: int | None = None
        self.said = ""

    def execute(self, status: int, message: str | None) -> None:
        if self.status is None:  # a tool that catches what is raised here ends once more
            self.status, self.said = status, self._printed.toString("UTF-8")
        raise RuntimeError("the tool ends here")

    class Java:
        implements = ("org.apache.kafka.common.utils.Exit$Procedure",)


class ToolsJvm:
    """A JVM that ends with this process."""

    def __init__(self, command: list[str]) -> None:
        """``command``: java with its options, of which the class path is the last."""
        with tempfile.TemporaryFile() as said:
            gateway = [*command[:-1], os.pathsep.join((command[-1], find_jar_path()))]
            gateway += ["py4j.GatewayServer", "--die-on-broken-pipe", "0"]
            self._process = subprocess.Popen(gateway, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.DEVNULL)
            port, deadline = b"", time.monotonic() + _START_SECONDS
            while not port.endswith(b"\n"):
                assert self._process.poll() is None and time.monotonic() < deadline, f"the JVM of the tools said {port!r}"
                time.sleep(0.05)
                said.seek(0)
                port = said.read()
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port)),
            callback_server_parameters=CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True),
        )
        callbacks = self._gateway.get_callback_server().get_listening_port()
        client = self._gateway.java_gateway_server.getCallbackClient()
        self._gateway.java_gateway_server.resetCallbackClient(client.getAddress(), callbacks)
        jvm = self._gateway.jvm
        # Once for all tools: Scala's console keeps the stream that it finds when its class is loaded.
        self._printed = jvm.java.io.ByteArrayOutputStream()
        stream = jvm.java.io.PrintStream(self._printed, True)
        jvm.System.setOut(stream)
        jvm.System.setErr(stream)
        self._ending = _Ending(self._printed)
        ways_out = jvm.org.apache.kafka.common.utils.Exit
        ways_out.setExitProcedure(self._ending)
        ways_out.setHaltProcedure(self._ending)
        self._one_at_a_time = threading.Lock()

    def run(self, tool: str, arguments: list[str]) -> tuple[int, str]:
        """Run the class of this name; returns the exit code, and what was printed."""
        with self._one_at_a_time:
            jvm = self._gateway.jvm
            self._ending.status = None
            self._printed.reset()
            given = self._gateway.new_array(jvm.java.lang.String, len(arguments))
            for place, argument in enumerate(arguments):
                given[place] = argument
            found: Any = jvm
            for part in tool.split("."):
                found = getattr(found, part)
            try:
                found.main(given)
            except Py4JJavaError as error:
                if self._ending.status is None:
                    return 1, f"{self._printed.toString('UTF-8')}{error}"
            if self._ending.status is None:
                return 0, str(self._printed.toString("UTF-8"))
            return self._ending.status, self._ending.said
