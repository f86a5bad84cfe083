"""Fixtures: `helenus`, a server that is empty at the start of each test, and `cql`, a session in a keyspace of the test's own.

One server runs for each test process, so also for each worker of pytest-xdist. Its settings come from the fixture `helenus_settings`, which
a project overrides in its `conftest.py`. When a test fails, the last lines of the server's log stand in the report.
"""

import helenus as kit
import pytest


@pytest.fixture(scope="session")
def helenus_settings():
    """The arguments of `helenus.start`, as a dict: `{"cosmos": True}`."""
    return {}


@pytest.fixture(scope="session")
def helenus_server(helenus_settings):
    """The server of this test process, as the tests before left it."""
    with kit.start(**helenus_settings) as server:
        yield server


@pytest.fixture
def helenus(helenus_server):
    """The server, emptied: no faults, full budgets, today's time, no rows. Tables that tests before made are there, and empty."""
    helenus_server.reset(keep="schema")
    return helenus_server


@pytest.fixture(scope="session")
def _helenus_session(helenus_server):
    return helenus_server.session()


@pytest.fixture
def cql(helenus, _helenus_session):
    """A session of the Python driver, in the keyspace `test`."""
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    _helenus_session.execute(f"CREATE KEYSPACE IF NOT EXISTS test WITH replication = {replication}")
    _helenus_session.set_keyspace("test")
    return _helenus_session


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    server = getattr(item, "funcargs", {}).get("helenus_server") or getattr(item, "funcargs", {}).get("helenus")
    if report.failed and server is not None:
        report.sections.append(("the last lines of the Helenus log", server.log))
