"""docs/metrics.md: each metric that a server can have, with the kind, the labels and the help that /metrics gives it."""
import re

import requests
from conftest import ROOT
from gateway_fleet import Fleet

ROW = re.compile(r"^\| `(portico_\w+)` \| (counter|gauge|histogram) \| ([^|]*) ?\| ([^|]+) \|", re.MULTILINE)


def page():
    """{name: (kind, labels, help)}"""
    rows = ROW.findall((ROOT / "docs/metrics.md").read_text())
    named = {name: (kind, re.findall(r"`(\w+)`", labels), text) for name, kind, labels, text in rows}
    assert len(named) == len(rows), "a metric is there twice"
    return named


def told(url):
    """The same of a server; the labels are None where it has no sample."""
    text = requests.get(url + "/metrics", timeout=60).text
    found = {}
    for name, help_text, kind in re.findall(r"^# HELP (\w+) (.*)\n# TYPE \1 (\w+)$", text, re.MULTILINE):
        sample = re.search(rf"^{name}(?:_bucket)?(?:{{(.*)}})? \S+$", text, re.MULTILINE)
        labels = sample and [label for label in re.findall(r'(\w+)="', sample[1] or "") if label != "le"]
        found[name] = (kind, labels, help_text)
    assert len(found) == text.count("# TYPE ")
    return found


def compare(url):
    of_page, of_server = page(), told(url)
    assert len(of_server) > 20
    for name, (kind, labels, help_text) in of_server.items():
        assert name in of_page, name
        assert of_page[name] == (kind, of_page[name][1] if labels is None else labels, help_text)


def test_the_metrics_of_a_server_are_those_of_the_page(mock):
    compare(mock.url)


def test_the_metrics_of_a_gateway_are_those_of_the_page():
    fleet = Fleet(1)
    try:
        fleet.wait_healthy(1)
        compare(fleet.url)
    finally:
        fleet.stop()


def test_the_page_has_each_metric_of_the_sources_and_no_other():
    """Those of pipelines, of gRPC and of discovery are there only when they are used."""
    texts = [path.read_text() for pattern in ("*.cc", "*.h") for path in (ROOT / "src").rglob(pattern)
             if not path.stem.endswith(("_test", "_bench"))]
    source = re.sub(r'"\s*"', "", "\n".join(texts))  # texts over several lines in one
    of_page = page()
    assert set(of_page) == set(re.findall(r'(?:"|# HELP )(portico_[a-z0-9_]*[a-z0-9])(?=[" ])', source))
    for name, (_kind, _labels, help_text) in of_page.items():
        assert help_text in source, f"{name}: {help_text}"
