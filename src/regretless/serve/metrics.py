"""Prometheus metrics, collected when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from regretless.serve.service import Service
from regretless.serve.traffic import EDGES, Traffic

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OF_MODELS = {
    "forecasts": "forecasts served",
    "labels": "labels learned",
    "refused": "labels that the learner could not learn",
    "log_loss": "mean log loss of the served forecasts",
    "error": "share of wrong forecasts",
    "baseline_log_loss": "mean log loss of the label frequencies",
    "delay_seconds": "mean seconds between forecast and label",
}
OF_REGRET = {
    "certificate": "upper bound on the regret of the learner",
    "delay_cost": "loss of the served forecasts minus that of the learner",
    "live_regret_at_most": "upper bound on the regret of the served forecasts",
}


class Numbers(Collector):
    """The numbers of a service at one moment."""

    def __init__(self, service: Service, traffic: Traffic) -> None:
        self.service, self.traffic = service, traffic

    def collect(self) -> Iterable[Any]:
        """All metrics."""
        service, traffic = self.service, self.traffic
        requests = CounterMetricFamily("regretless_requests", "requests by path and status", labels=["path", "status"])
        for (path, status), n in [*traffic.requests.items()]:
            requests.add_metric([path, str(status)], n)
        yield requests
        below, total = [], 0
        for edge, n in zip([*map(str, EDGES), "+Inf"], traffic.latency, strict=True):
            total += n
            below.append((edge, total))
        yield HistogramMetricFamily(
            "regretless_request_seconds", "latency of requests", buckets=below, sum_value=traffic.latency_sum
        )
        yield GaugeMetricFamily(
            "regretless_log_available", "whether the log can be written", service.unavailable is None
        )
        yield GaugeMetricFamily("regretless_seq", "the last event of the log", service.seq)
        yield CounterMetricFamily("regretless_commits", "commits of the log", service.commits)
        messages = service.messages()
        if messages:
            waiting = messages.pop("waiting")
            yield GaugeMetricFamily("regretless_parked_labels", "labels that wait for their forecasts", waiting)
            counts = CounterMetricFamily("regretless_messages", "messages of a broker by outcome", labels=["outcome"])
            for outcome, n in messages.items():
                counts.add_metric([outcome], n)
            yield counts
        for names, of in ((OF_MODELS, "summary"), (OF_REGRET, "regret")):
            found = {name: self._of(host, of) for name, host in service.hosts.items()}
            for name, about in names.items():
                gauge = GaugeMetricFamily(f"regretless_model_{name}", about, labels=["model"])
                for model, values in found.items():
                    if values[name] is not None:
                        gauge.add_metric([model], values[name])
                yield gauge

    @staticmethod
    def _of(host: Any, what: str) -> dict[str, Any]:
        found: dict[str, Any] = host.sums.summary() if what == "summary" else host.regret()
        return found


def metrics(service: Service, traffic: Traffic) -> bytes:
    """The metrics as text. For a function that `Service.call` runs."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Numbers(service, traffic))
    return generate_latest(registry)
