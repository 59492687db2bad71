"""The settlement of a job with ten thousand children on PostgreSQL, compared with that of a job without children."""

from __future__ import annotations

from _bench import Lab, Report
from _postgres import Server, main_with_server
from children import compare

from queuectl.store.open import open_store


def children(lab: Lab, server: Server) -> Report:
    report = Report("the exchange that ends a parent")
    home = lab.new_home()
    compare(report, "PostgreSQL", open_store(str(home), server.new_database()), home)
    return report


if __name__ == "__main__":
    main_with_server(children, __doc__)
