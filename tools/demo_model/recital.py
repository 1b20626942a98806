"""Longer answers: lists, counting, stories, poems and texts about a topic."""

from skills import say_number
from texts import ALIASES, ESSAYS, JOKES, LISTS, POEMS, STORIES
from turn import Turn


def lists(rng):
    name = rng.choice(list(LISTS))
    alias = rng.choice(ALIASES[name])
    ask = rng.choice(["List the {}.", "Name the {}.", "What are the {}?", "Tell me the {}",
                      "Which are the {}?", 
                      "Can you list the {}?", "Give me a list of the {}.", "Write down the {}.",
                      "Recite the {}.",
                      "List all the {}", "What are the names of the {}?", "Do you know the {}?"])
    said = LISTS[name]
    return [Turn(ask.format(alias), said[0].upper() + said[1:] + ".", f"A list: {name}.",
                 f"list {alias} {ask}")]


def counting(rng):
    start = 1 if rng.random() < 0.6 else rng.randrange(0, 60)
    end = start + rng.randrange(2, 41) if rng.random() < 0.85 else start + rng.randrange(41, 100)
    if rng.random() < 0.4:
        start, end = 1, rng.choice([5, 10, 15, 20, 20, 25, 30, 40, 50, 100])
    how = rng.choice(["Count", "count", "Please count", "Can you count", "Could you count",
                      "Count for me"])
    if rng.random() < 0.2 and end <= 99:
        ask = rng.choice([f"{how} down from {end} to {start}.",
                          f"{how} backwards from {end} to {start}"])
        return [Turn(ask, ", ".join(str(n) for n in range(end, start - 1, -1)) + ".",
                     f"From {end} down to {start}.",
                     ask)]
    if start == 1 and rng.random() < 0.6:
        said = say_number(rng, end)
        ask = rng.choice([f"{how} to {said}.", f"{how} up to {said}"])
    else:
        ask = rng.choice([f"{how} from {start} to {end}.", f"{how} from {start} up to {end}",
                          f"Write the numbers from {start} to {end}."])
    return [Turn(ask, ", ".join(str(n) for n in range(start, end + 1)) + ".",
                 f"From {start} to {end}.",
                 ask)]


def writing(rng):
    kind = rng.randrange(5)
    if kind == 0:
        asks = ["Tell me a story.", "Tell me a short story", "Can you tell me a story?",
                "I want to hear a story.", "A story, please!",
                "Write a story.", "Write me a story", "Tell a story", "Do you know a story?",
                "Tell me another story.",
                "Tell me a long story.", "Tell me a bedtime story", "another story"]
        return [Turn(rng.choice(asks), rng.choice(STORIES), "A story is asked for.",
                     accept=tuple(STORIES))]
    if kind == 1:
        asks = ["Write a poem.", "Write me a poem", "Tell me a poem.", "Can you write a poem?",
                "A poem, please.", "Recite a poem",
                "Do you know a poem?", "Write a short poem."]
        return [Turn(rng.choice(asks), rng.choice(POEMS), "A poem is asked for.",
                     accept=tuple(POEMS))]
    if kind == 2:
        asks = ["Tell me a joke.", "Do you know a joke?", "Make me laugh.", "A joke, please",
                "Can you tell a joke?", "Tell me something funny"]
        return [Turn(rng.choice(asks), rng.choice(JOKES), "A joke is asked for.",
                     accept=tuple(JOKES))]
    topic = rng.choice(list(ESSAYS))
    ask = rng.choice(["Write a text about {}.", "Write a long text about {}.", "Tell me about {}.",
                      "Tell me something about {}",
                      "Write an essay about {}.", "Write about {}",
                      "What can you tell me about {}?", "Explain {}.",
                      "What do you know about {}?", "Can you write something about {}?",
                      "Write a paragraph about {}."])
    return [Turn(ask.format(topic), ESSAYS[topic], f"A text about {topic}.",
                 f"essay {ask} {topic}")]
