import pathlib

import pytest

import portico

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def demo():
    return str(ROOT / "models/demo")


@pytest.fixture
def tokenizer(demo):
    return portico.Tokenizer.from_pretrained(demo)


@pytest.fixture
def chat(demo):
    return portico.ChatTemplate.from_pretrained(demo)
