"""Asks servers for vectors, classes and relevance: every route and method, with the mock engine that can do it."""
import requests

# Flags of a mock engine whose texts are still there whenever a test looks.
SLOW = ("--mock-ttft-ms", "600000")
# Kinds of mock engines.
EMBED, RANK, CLASSIFY, GENERATE = ("--is-embedding",), ("--mock-labels", "1"), ("--mock-labels", "3"), ()
KINDS = [EMBED, RANK, CLASSIFY, GENERATE]


def texts(body):
    """A body with this list of texts, whatever its field is called."""
    return lambda several: {**body, **{key: several for key, value in body.items() if value == []}}


RANKING = texts({"query": "q", "documents": []})
SCORING = texts({"query": "q", "items": [], "label_token_ids": [5, 6]})
ROUTES = [
    (EMBED, "/v1/embeddings", texts({"input": []})),
    (EMBED, "/encode", texts({"text": []})),
    (RANK, "/v1/rerank", RANKING),
    (RANK, "/rerank", RANKING),
    (RANK, "/v2/rerank", RANKING),
    (CLASSIFY, "/v1/classify", texts({"input": []})),
    (CLASSIFY, "/classify", texts({"text": []})),
    (CLASSIFY, "/v1/score", SCORING),
    (GENERATE, "/v1/score", SCORING),
]
# Methods of gRPC, with a message's fields or, for JSON, the route whose body they take.
METHODS = [
    (EMBED, "sglang", "TextEmbed", {"text": "a"}),
    (EMBED, "sglang", "Embed", {"input_ids": [1]}),
    (EMBED, "scheduler", "Embed", {"tokenized": {"input_ids": [1]}}),
    (EMBED, "sglang", "OpenAIEmbed", "/v1/embeddings"),
    (RANK, "sglang", "Rerank", "/v1/rerank"),
    (CLASSIFY, "sglang", "Classify", {"text": "a"}),
    (CLASSIFY, "scheduler", "Embed", {"tokenized": {"input_ids": [1]}}),
    (CLASSIFY, "sglang", "OpenAIClassify", "/v1/classify"),
    (CLASSIFY, "sglang", "Score", "/v1/score"),
    (GENERATE, "sglang", "Score", "/v1/score"),
]


def post(server, path, body, **keywords):
    return requests.post(server.url + path, json=body, timeout=120, **keywords)


def refused(answer, status=400):
    assert answer.status_code == status, answer.text
    return answer.json()["error"]
