"""Metrics: one table, own registries, and a rendering a scrape understands."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coatcheck.observe.metrics import METRICS, MetricKind, Metrics


def labels_of(name: str) -> dict[str, str]:
    [row] = [row for row in METRICS if row.name == name]
    return dict.fromkeys(row.labels, "x")


def test_names_are_unique_and_say_their_unit() -> None:
    names = [row.name for row in METRICS]
    assert len(set(names)) == len(names)
    for row in METRICS:
        assert re.fullmatch(r"[a-z][a-z_]*", row.name)
        assert row.help.endswith(".")
        assert row.name.endswith("_seconds") == (row.unit == "seconds")
        assert bool(row.buckets) == (row.kind is MetricKind.HISTOGRAM)


def test_every_metric_counts_and_is_rendered_under_its_name() -> None:
    metrics = Metrics()
    for row in METRICS:
        labels = labels_of(row.name)
        match row.kind:
            case MetricKind.COUNTER:
                metrics.count(row.name, 3, **labels)
            case MetricKind.GAUGE:
                metrics.set(row.name, 3, **labels)
            case MetricKind.HISTOGRAM:
                metrics.observe(row.name, 3, **labels)
    body, content_type = metrics.render()
    assert content_type.startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    for row in METRICS:
        family = families[row.prometheus_name.removesuffix("_total")]
        assert family.documentation == row.help
        assert family.type == row.kind
        expected = 1 if row.kind is MetricKind.HISTOGRAM else 3
        assert metrics.read(row.name, **labels_of(row.name)) == expected
    assert b"_created" not in body


def test_label_order_does_not_matter_and_values_do_not_mix() -> None:
    metrics = Metrics()
    metrics.count("refused", operation="a", code="b")
    metrics.count("refused", code="b", operation="a")
    metrics.count("refused", operation="b", code="a")
    assert metrics.read("refused", operation="a", code="b") == 2
    assert metrics.read("refused", operation="b", code="a") == 1


def test_each_has_a_registry_of_its_own() -> None:
    one, other = Metrics(), Metrics()
    one.count("rescued")
    assert other.read("rescued") == 0


def test_what_is_not_in_the_table_is_a_mistake() -> None:
    metrics = Metrics()
    with pytest.raises(KeyError):
        metrics.count("nothing")
    with pytest.raises(ValueError, match="label"):
        metrics.count("accepted", tenant="x")
    with pytest.raises(TypeError, match="no counter"):
        metrics.count("ready_jobs", operation="x")
