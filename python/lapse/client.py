"""A client of `lapse serve`, with the standard library alone; tables need NumPy, as everywhere in the package."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.parse
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Union

if TYPE_CHECKING:
    from ._table import Table

BATCH = 10000


class ServerError(Exception):
    """A response that is not 200: `status`, and the problem's members (`detail`, `field`, ...) in `problem`.

    >>> lapse.ServerError(404, {"detail": "there is no history of this name"}).status
    404
    """

    def __init__(self, status: int, problem: Dict[str, Any]) -> None:
        super().__init__(problem.get("detail", f"status {status}"))
        self.status, self.problem = status, problem


class Client:
    """A connection for each thread, which is kept open.

    >>> client = lapse.Client("http://127.0.0.1:8080")
    >>> client.append([{"history": "ann", "time": "now", "event": "view tent", "id": "e1"}])["stored"]
    1
    """

    def __init__(self, address: str = "http://127.0.0.1:8080", token: Optional[str] = None, timeout: float = 30,
                 retries: int = 3) -> None:
        self._address = urllib.parse.urlsplit(address)
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise ValueError(f"{address} is not an address such as http://127.0.0.1:8080")
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._timeout, self._retries, self._local = timeout, retries, threading.local()

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self._local, "connection", None) is None:
            kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
            self._local.connection = kind(self._address.hostname or "", self._address.port, timeout=self._timeout)
        return self._local.connection

    def call(self, method: str, path: str, body: Any = None) -> Dict[str, Any]:
        """One request. It is sent again if the connection breaks or the server is overloaded: events should have an id."""
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(self._retries + 1):
            try:
                connection = self._connection()
                connection.request(method, path, data, self._headers)
                response = connection.getresponse()
                value = json.loads(response.read())
            except (OSError, http.client.HTTPException):
                self._local.connection = None
                if attempt == self._retries:
                    raise
            else:
                if response.status == 200:
                    return value
                if response.status != 503 or attempt == self._retries:
                    raise ServerError(response.status, value)
            time.sleep(0.1 * 2 ** attempt)
        raise AssertionError("the loop returns or raises")

    def append(self, events: Iterable[Dict[str, Any]]) -> Dict[str, int]:
        """Stores events; returns how many were stored, duplicates and errors. The first error is raised if nothing is good."""
        total = {"stored": 0, "duplicates": 0, "errors": 0}
        batch: List[Dict[str, Any]] = []
        for event in events:
            batch.append(event)
            if len(batch) == BATCH:
                self._send(batch, total)
                batch = []
        if batch:
            self._send(batch, total)
        return total

    def _send(self, batch: List[Dict[str, Any]], total: Dict[str, int]) -> None:
        answer = self.call("POST", "/v1/events", batch)
        for name in total:
            total[name] += answer[name]

    def predict(self, history: Union[str, Sequence[str], None] = None, at: Any = "now", top: int = 10,
                events: Optional[List[Any]] = None, **more: Any) -> "Table":
        """The most probable next events, as `Model.predict` returns them: sequence, at, time, rank, event, score, probability,
        and their source. `more` is what POST /v1/predict takes: unseen, filter, boost, only, exclude, strict, as_of."""
        import numpy as np

        from ._table import Names, Table, Times
        asked = list(at) if isinstance(at, (list, tuple)) else [at]
        subject = {"events": events} if history is None else {"history": history}
        answers = self.call("POST", "/v1/predict", {**subject, "at": asked, "top": top, **more})["answers"]
        rows = [(a, asked[i % len(asked)] if len(answers) % len(asked) == 0 else "", k, p)
                for i, a in enumerate(answers) for k, p in enumerate(a["predictions"])]

        def names(texts: List[str]) -> Names:
            known = {name: i for i, name in enumerate(dict.fromkeys(texts))}
            return Names(np.array([known[t] for t in texts], np.int32), list(known))

        def numbers(name: str) -> "np.ndarray[Any, Any]":
            return np.array([np.nan if r[3][name] is None else r[3][name] for r in rows], np.float64)

        return Table({
            "sequence": names([r[0]["history"] or "" for r in rows]),
            "at": names([str(r[1]) for r in rows]),
            "time": Times(np.array([np.nan if r[0]["at"] is None else r[0]["at"] for r in rows], np.float64)),
            "rank": np.array([r[2] + 1 for r in rows], np.int64),
            "event": names([r[3]["event"] for r in rows]),
            "score": numbers("score"),
            "probability": numbers("probability"),
            "source": names([r[3]["source"] for r in rows]),
        })

    def erase(self, history: str) -> None:
        """Erases a history."""
        self.call("DELETE", "/v1/histories/" + urllib.parse.quote(history, safe=""))
