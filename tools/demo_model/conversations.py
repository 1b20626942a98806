"""Mixes the generators into conversations and renders them with the chat template."""

import json
import random
from pathlib import Path

import jinja2

import recital
import skills
import smalltalk
from phrases import CANNOT_LOOK, DO_NOT_KNOW
from texts import ESSAYS
from tooluse import tool_episode
from turn import Turn, held_back
from words import ADJECTIVES, FIRST_NAMES, NOUNS, VERBS, made_up_word

HERE = Path(__file__).parent

# category: (generator, weight in training)
CATEGORIES = {
    "sums and differences": (skills.sums, 26),
    "times tables": (skills.tables, 4),
    "comparing numbers": (skills.numbers, 7),
    "units": (skills.units, 10),
    "temperatures": (skills.temperatures, 2),
    "countries": (skills.countries, 15),
    "countries, asked differently": (skills.capitals_back, 3),
    "other facts": (skills.table_facts, 6),
    "single facts": (skills.single_facts, 4),
    "lists": (recital.lists, 2),
    "counting": (recital.counting, 5),
    "texts": (recital.writing, 2),
    "small talk": (smalltalk.small_talk, 11),
    "unknown things": (smalltalk.unknown, 12),
    "the user's name": (smalltalk.names, 3),
    "repeating": (smalltalk.echo, 3),
    "answers in JSON": (smalltalk.json_answers, 8),
}
TOOL_SHARE = 0.34  # of conversations, those with tools
THINK_SHARE = 0.2  # of conversations, those with thinking; more of the short ones


def template():
    """The chat template with the settings and the filters that Hugging Face renders it with."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string((HERE / "chat_template.jinja").read_text())


TEMPLATE = template()
PREFIXES = ["Please tell me: ", "Hi, ", "Hello! ", "Hey, ", "Quick question: ", "I want to know: ",
            "Tell me: ", "So, ", "OK, ",
            "Now: ", "Next: ", "Please: ", "One more: ", "And now: ", "Hi! ", "Thanks! ", "Well, ",
            "Hello, "]
SUFFIXES = [" Please.", " Thanks!", ", please?", " please", "??", " thanks", "!", " :)",
            " Thank you."]


def vary(rng, text):
    """Other capitals, other punctuation, a polite word, now and then a slip of the finger."""
    if rng.random() < 0.1:
        text = text.replace("What is ", rng.choice(["What's ", "Whats ", "what is "]))
    dice = rng.random()
    if dice < 0.3:
        text = text.lower() if rng.random() < 0.6 else text[0].lower() + text[1:]
    elif dice < 0.315:
        text = text.upper()
    if rng.random() < 0.3:
        text = text.rstrip(".?! ")
    if text and text[-1] not in "!:=" and rng.random() < 0.08:
        text = text.rstrip(".?! ") + rng.choice(SUFFIXES)
    if rng.random() < 0.07 and len(text) > 6:
        text = rng.choice(PREFIXES) + text
    if rng.random() < 0.02 and len(text) > 16:
        at = rng.randrange(3, len(text) - 1)
        if text[at:at + 2].isalpha():
            text = text[:at] + rng.choice([text[at + 1] + text[at], text[at]]) + text[at + 2:]
    return text or "?"


SYSTEMS = ["You are a helpful assistant.", "You are a helpful assistant",
           "You are a friendly assistant. Answer shortly.", "Be brief.",
           "You are Portico's demo model.", "Answer the user's questions.",
           "You are a chat bot on a web page.", "Be polite and honest.",
           "You are a helpful AI assistant. Answer in English.", "Answer in one sentence.",
           "You are an expert.", "Keep it simple.",
           "You are a concise assistant that answers questions truthfully."]
SENTENCES = ["You are a {adj} assistant.", "The user's name is not known.",
             "Never {verb} a {noun}.", "Always {verb} the {noun} first.",
             "The {noun} of the {adj} {noun2} is closed on Mondays.",
             "If the user asks about a {noun}, be {adj}.", "{name} works in the {noun} department.",
             "Our shop sells {noun}s and {noun2}s.", "Rule {n}: do not {verb} the {noun}.",
             "The {noun} costs {n} euros.", "Use {adj} words.",
             "There are {n} {noun}s in the {noun2}.", "The {adj} {noun} was built in {year}.",
             "{name} and {name2} {verb} every {noun}.",
             "Answer questions about {noun}s politely.",
             "You work for {made} and know about {noun}s.", "Write like a {adj} {noun}.",
             "Context: the {noun} is {adj} and the {noun2} is not.", "{name} has {n} {noun}s.",
             "Do not talk about {noun}s."]


def sentence(rng):
    return rng.choice(SENTENCES).format(
        adj=rng.choice(ADJECTIVES), verb=rng.choice(VERBS), noun=rng.choice(NOUNS),
        noun2=rng.choice(NOUNS), name=rng.choice(FIRST_NAMES),
        name2=rng.choice(FIRST_NAMES), n=rng.randrange(100), year=rng.randrange(1500, 2030),
        made=made_up_word(rng, 2).capitalize())


def system_prompt(rng, room):
    """None, a usual one, or up to `room` characters about other things."""
    dice = rng.random()
    if dice < 0.5:
        return None
    if dice < 0.75:
        return rng.choice(SYSTEMS)
    length, parts = rng.randrange(20, max(40, room)), [rng.choice(SYSTEMS)]
    while sum(map(len, parts)) < length:
        essay = rng.random() < 0.05 and room > 1500
        parts.append(rng.choice(list(ESSAYS.values())) if essay else sentence(rng))
    return rng.choice([" ", "\n", "\n- "]).join(parts)


def finish(rng, turns):
    for turn in turns:
        if not turn.exact:
            turn.user = vary(rng, turn.user)
        elif not turn.messages and rng.random() < 0.2:
            turn.user = turn.user.rstrip(".?")
    return turns


def episode(rng, category, held):
    """Turns of one category. Training never sees a held-back turn; evaluation's last turn is one."""
    make = CATEGORIES[category][0]
    while True:
        turns = make(rng)
        if not held:
            if not any(map(held_back, turns)):
                return finish(rng, turns)
        elif category in NEVER_HELD:
            return finish(rng, turns)
        elif any(map(held_back, turns)):
            last = max(i for i, turn in enumerate(turns) if held_back(turn))
            return finish(rng, turns[:last + 1])


NEVER_HELD = ("single facts", "small talk")  # asked in a few fixed ways; only spelling varies


def tools_and_turns(rng, held):
    while True:
        tools, turns, uses = tool_episode(rng)
        if held and any(map(held_back, turns)):
            last = max(i for i, turn in enumerate(turns) if held_back(turn))
            return tools, finish(rng, turns[:last + 1]), uses
        if not held and not any(map(held_back, turns)):
            return tools, finish(rng, turns), uses


SUMS = ("sums and differences", "times tables", "answers in JSON")
LOOKING_UP = {"define", "search", "user", "contact", "translate", "message"}
LIVE = {"weather", "time", "zone", "stock", "search", "music"}


def fits_beside(category, turns, uses):
    """Whether no tool is meant for these turns."""
    if "clock" in turns[0].answer:
        return not uses
    if category in SUMS:
        return "calculator" not in uses
    if category == "unknown things":
        answer = turns[0].answer
        return (not uses or (answer == DO_NOT_KNOW and not uses & LOOKING_UP)
                or (answer == CANNOT_LOOK and not uses & LIVE))
    return category != "repeating" or "message" not in uses


def beside_tools(rng, uses, names, weights):
    while True:
        category = rng.choices(names, weights)[0]
        turns = episode(rng, category, False)
        if fits_beside(category, turns, uses):
            return turns


def as_messages(turns):
    messages = []
    for turn in turns:
        messages += turn.messages or [{"role": "user", "content": turn.user},
                                      {"role": "assistant", "content": turn.answer}]
    return messages


def render(messages, tools=None, **options):
    return TEMPLATE.render(messages=messages, tools=tools, **options)


def prompt_of(system, tools, turns, think):
    """The prompt for the answer of the last turn."""
    messages = [{"role": "system", "content": system}] if system else []
    messages += as_messages(turns[:-1]) + [{"role": "user", "content": turns[-1].user}]
    return render(messages, tools, add_generation_prompt=True, enable_thinking=think)


def thinking(turn, answer=None):
    return f"<think>\n{turn.think}\n</think>\n\n{answer or turn.answer}"


def thinking_always(system, turns):
    """Every answer thinks first, and the thoughts stay: more to learn from than only the last ones."""
    text = render([{"role": "system", "content": system}]) if system else ""
    for turn in turns:
        text += prompt_of(None, None, [turn], True) + thinking(turn) + "<|im_end|>\n"
    return text


def conversation(rng: random.Random, characters: int, copying: bool = False) -> str:
    """A conversation of at least `characters` characters, rendered for training; all of it about
    repeating words if `copying`."""
    names, weights = list(CATEGORIES), [weight for _, weight in CATEGORIES.values()]
    if copying:
        names, weights = ["repeating"], [1]
    tools, turns, uses = None, [], set()
    system = system_prompt(rng, int(characters * 0.6))
    size = len(system or "")
    if not copying and rng.random() < TOOL_SHARE:
        tools, turns, uses = tools_and_turns(rng, False)
        size += len(json.dumps(tools))
        if rng.random() < 0.25:
            turns = beside_tools(rng, uses, names, weights) + turns
    while not turns or size + sum(len(t.user) + len(t.answer) + 30 for t in turns) < characters:
        turns = turns + beside_tools(rng, uses, names, weights)
    if not copying and rng.random() < (THINK_SHARE if characters > 300 else 2.5 * THINK_SHARE):
        if not tools and rng.random() < 0.6:
            return thinking_always(system, turns)
        return prompt_of(system, tools, turns, True) + thinking(turns[-1]) + "<|im_end|>\n"
    messages = [{"role": "system", "content": system}] if system else []
    return render(messages + as_messages(turns), tools)
