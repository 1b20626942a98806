"""Greetings, questions about the model itself, and things it does not know."""

from facts import COLOURS, COUNTRIES, LEGS, OPPOSITES, SOUNDS, YOUNG
from phrases import (CANNOT_DO, CANNOT_LOOK, DO_NOT_KNOW, FOREIGN, KNOWLEDGE, LOOK_UPS,
                     ONLY_ENGLISH,
                     PEOPLE, SMALL_TALK, TASKS, TOO_FAR, TOO_LARGE, TOO_LARGE_TABLE)
from skills import countries, operand, sums, units
from turn import Turn
from words import (ADJECTIVES, CITIES, NOUNS, VERBS, any_city, any_name, any_word, made_up_word)

KNOWN = {*OPPOSITES, *YOUNG, *SOUNDS, *LEGS, *COLOURS, "tree", "sea", "year", "month", "world",
         "time", "number"}
UNKNOWN_NOUNS = [noun for noun in NOUNS if noun not in KNOWN]


def small_talk(rng):
    asks, answers = rng.choice(SMALL_TALK if rng.random() < 0.6 else SMALL_TALK[:12])
    ask = rng.choice(asks.split("|"))
    return [Turn(ask, rng.choice(answers), "Small talk.", accept=tuple(answers))]


def too_hard(rng):
    """Sums that the model does not even try."""
    kind = rng.randrange(6)
    op = rng.choice(["plus", "minus", "+", "-"])
    if kind < 2:
        pair = [rng.randrange(200, rng.choice([1000, 10000, 1000000])), rng.randrange(1000)]
        rng.shuffle(pair)
        ask = rng.choice(["What is {} {} {}?", "{} {} {}", "Calculate {} {} {}.",
                          "How much is {} {} {}?", "{}{}{}"])
        return ask.format(pair[0], op, pair[1]), TOO_LARGE
    if kind == 2:
        op2 = rng.choice(["plus", "minus", "+", "-", "times"])
        ask = rng.choice(["What is {} {} {} {} {}?", "{} {} {} {} {}",
                          "How much is {} {} {} {} {}?"])
        return ask.format(operand(rng), op, operand(rng), op2, operand(rng)), TOO_LARGE
    if kind == 3:
        a, b = rng.randrange(100) + rng.randrange(1, 10) / 10, rng.choice([operand(rng),
                                                                           operand(rng) + 0.5])
        return rng.choice(["What is {} {} {}?", "{} {} {}"]).format(a, op, b), TOO_LARGE
    if kind == 4:
        pair = [rng.randrange(13, rng.choice([100, 1000])), rng.randrange(2, 100)]
        rng.shuffle(pair)
        ask = rng.choice(["What is {} {} {}?", "{} {} {}", "How much is {} {} {}?",
                          "Calculate {} {} {}."])
        sign = rng.choice(["times", "*", "x", "multiplied by"])
        if rng.random() < 0.3:
            pair[0] += pair[0] % pair[1] == 0
            sign = rng.choice(["divided by", "/"])
        return ask.format(pair[0], sign, pair[1]), TOO_LARGE_TABLE
    end = rng.choice([200, 250, 300, 500, 1000, 10000, 1000000, rng.randrange(200, 5000)])
    return rng.choice(["Count to {}.", "Count from 1 to {}",
                       "Please count up to {}."]).format(end), TOO_FAR


def unknown(rng):
    dice = rng.random()
    if dice < 0.2:
        user, answer = too_hard(rng)
        return [Turn(user, answer, "That is too hard for me.", user)]
    if dice < 0.23:
        user = rng.choice(FOREIGN)
        return [Turn(user, ONLY_ENGLISH, "This is not English.")]
    asks, answer = ((KNOWLEDGE, DO_NOT_KNOW) if dice < 0.74 else (TASKS, CANNOT_DO) if dice < 0.9
                    else (LOOK_UPS, CANNOT_LOOK))
    place = rng.choice([made_up_word(rng, 2).capitalize(), rng.choice(CITIES),
                        rng.choice(list(COUNTRIES))])
    person = rng.choice([f"{any_name(rng)} {made_up_word(rng, 2).capitalize()}", rng.choice(PEOPLE),
                         rng.choice(PEOPLE)])
    ask = rng.choice(asks)
    user = ask.format(
        place=place, city=any_city(rng), noun=rng.choice(UNKNOWN_NOUNS),
        noun2=rng.choice(UNKNOWN_NOUNS),
        verb=rng.choice(VERBS), adj=rng.choice(ADJECTIVES), name=any_name(rng), person=person,
        made=made_up_word(rng), made2=made_up_word(rng), year=rng.randrange(1500, 2030),
        n=rng.randrange(100), n2=rng.randrange(100))
    return [Turn(user, answer, "I have not learnt this.", user if "{" in ask else "")]


def names(rng):
    """The user's name, asked for at once or after other turns."""
    name = any_name(rng)
    tell = rng.choice(["My name is {}.", "I am {}.", "Hello, I am {}.", "Hi, my name is {}",
                       "I'm {}.", "Call me {}.", "You can call me {}"])
    meet = Turn(tell.format(name), f"Nice to meet you, {name}.", f"The user is {name}.",
                f"name {name} {tell}", exact=True)
    ask = rng.choice(["What is my name?", "Who am I?", "Do you know my name?", "What's my name?",
                      "Do you remember my name?"])
    recall = Turn(ask, f"Your name is {name}.", f"The user said: {name}.", f"recall {name} {ask}",
                  exact=True)
    if rng.random() < 0.12:
        return [Turn(ask, "You have not told me your name yet.", "No name was given.")]
    middle = []
    if rng.random() < 0.5:
        middle = rng.choice([small_talk, sums, units, countries, unknown])(rng)
    return [meet, *middle, recall] if rng.random() < 0.75 else [meet]


def echo(rng):
    words = " ".join(any_word(rng) for _ in range(rng.randrange(1, rng.choice([4, 8, 16]))))
    words = words.capitalize() if rng.random() < 0.4 else words
    ask = rng.choice(["Repeat after me: {}", "Repeat: {}", "Say: {}", "Please say {}", "Say \"{}\"",
                      "Echo {}", "Repeat this: {}", "Say {}"])
    return [Turn(ask.format(words), words, "I repeat it.", f"echo {words}", exact=True)]


def json_answers(rng):
    """Answers as JSON, for requests that ask for a schema."""
    how = rng.choice([" Answer in JSON.", " Reply in JSON.", " Give the answer as JSON.",
                      " Answer with a JSON object.", " Respond in JSON"])
    if rng.random() < 0.4:
        name, age = any_name(rng), rng.randrange(1, 100)
        ask = rng.choice(["{} is {} years old.", "My friend {} is {} years old.",
                          "{}, {} years old."]).format(name, age)
        how = how if rng.random() < 0.5 else " Give me the name and the age as JSON."
        return [Turn(ask + how, f'{{"name": "{name}", "age": {age}}}', "A name and an age.",
                     f"person {name} {age}", exact=True)]
    if rng.random() < 0.5:
        a, b = rng.randrange(21), rng.randrange(21)
        op, value = rng.choice([("plus", a + b), ("minus", a - b)])
        return [Turn(f"What is {a} {op} {b}?" + how, f'{{"answer": {value}}}', f"{value}",
                     f"{a} {op} {b}", exact=True)]
    turn = countries(rng, "capital")[0]
    if "tiny" in turn.answer:
        return json_answers(rng)
    city = turn.answer.rsplit(" is ", 1)[1].rstrip(".")
    return [Turn(turn.user.rstrip(".?") + "?" + how, f'{{"answer": "{city}"}}', turn.think,
                 turn.key + how)]
