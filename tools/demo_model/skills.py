"""Questions with one right answer: sums, units, facts. Each generator returns an episode,
a list of turns of which the later ones may follow up on the earlier ones."""

from facts import (COLOURS, COUNTRIES, LEGS, OPPOSITES, SINGLE, SOUNDS, SYMBOLS, UNKNOWN_COUNTRIES,
                   YOUNG)
from turn import Turn

NUMBER_WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen "
                "fourteen "
                "fifteen sixteen seventeen eighteen nineteen twenty").split()

ASK_VALUE = ["What is {}?", "What's {}?", "How much is {}?", "Calculate {}.", "Compute {}.", "{}",
             "{}?", "{} =", "Tell me what {} is.", "Can you work out {}?", "Please calculate {}",
             "What do you get for {}?", "Do you know what {} is?", "What does {} make?",
             "I need {}.", "Give me the result of {}.", "how much does {} equal?"]
ASK_PLUS = ["Add {a} and {b}.", "Add {b} to {a}.", "What is the sum of {a} and {b}?",
            "How much is {a} and {b}?",
            "If I have {a} apples and get {b} more, how many do I have?",
            "What do you get when you add {a} and {b}?", "Sum {a} and {b}", "{a} and {b} make?"]
ASK_MINUS = ["Subtract {b} from {a}.", "Take {b} away from {a}.",
             "What is the difference of {a} and {b}?", "What is {a} take away {b}?",
             "If I have {a} apples and eat {b}, how many are left?", "What is {a} less {b}?",
             "What do you get when you subtract {b} from {a}?"]
ASK_TIMES = ["Multiply {a} by {b}.", "What is the product of {a} and {b}?",
             "What is {a} multiplied by {b}?"]
ASK_DIVIDED = ["Divide {a} by {b}.", "What is {a} over {b}?", "How often does {b} go into {a}?"]
SIGNS = {"plus": ["{a} plus {b}", "{a} + {b}", "{a}+{b}"],
         "minus": ["{a} minus {b}", "{a} - {b}", "{a}-{b}"],
         "times": ["{a} times {b}", "{a} * {b}", "{a} x {b}", "{a}*{b}"],
         "divided by": ["{a} divided by {b}", "{a} / {b}", "{a}/{b}"]}
ASK = {"plus": ASK_PLUS, "minus": ASK_MINUS, "times": ASK_TIMES, "divided by": ASK_DIVIDED}
SYMBOL = {"plus": "+", "minus": "-", "times": "*", "divided by": "/"}


def calculate(a, op, b):
    return {"plus": a + b, "minus": a - b, "times": a * b, "divided by": a // b if b else 0}[op]


def steps(a, op, b):
    """The working in think mode: tens first, then ones."""
    result, sign = calculate(a, op, b), SYMBOL[op]
    if op in ("plus", "minus") and b >= 10 and b % 10 and result >= 0:
        part = calculate(a, op, b - b % 10)
        return f"{a} {sign} {b}: {a} {sign} {b - b % 10} = {part}, {part} {sign} {b % 10} = {result}"
    return f"{a} {sign} {b} = {result}"


def arithmetic_turn(rng, a, op, b, user):
    return Turn(user, f"{a} {op} {b} is {calculate(a, op, b)}.", steps(a, op, b), f"{a} {op} {b}")


def say_number(rng, n):
    return NUMBER_WORDS[n] if n <= 20 and rng.random() < 0.08 else str(n)


def phrase(rng, a, op, b):
    a, b = say_number(rng, a), say_number(rng, b)
    if rng.random() < 0.3 and ASK[op]:
        return rng.choice(ASK[op]).format(a=a, b=b)
    return rng.choice(ASK_VALUE).format(rng.choice(SIGNS[op]).format(a=a, b=b))


def operand(rng):
    return rng.randrange(100) if rng.random() < 0.7 else rng.randrange(21)


def sums(rng):
    op = rng.choice(["plus", "minus"])
    a, b = operand(rng), operand(rng)
    if op == "minus" and a < b and rng.random() < 0.7:
        a, b = b, a
    turns = [arithmetic_turn(rng, a, op, b, phrase(rng, a, op, b))]
    result = calculate(a, op, b)
    while result >= 0 and rng.random() < 0.35 and len(turns) < 4:
        op, b = rng.choice(["plus", "minus"]), operand(rng)
        if op == "minus" and b > result:
            b = rng.randrange(result + 1)
        ask = rng.choice(["And {op} {b}?", "And {op} {b}", "{op} {b}?", "now {op} {b}",
                          "And then {op} {b}?",
                          "and {sign} {b}?", "What about {op} {b}?", "{sign} {b}",
                          "Now {op} {b}, please."])
        turns.append(arithmetic_turn(rng, result, op, b, ask.format(op=op, b=b, sign=SYMBOL[op])))
        result = calculate(result, op, b)
        if result > 198:
            break
    return turns


def tables(rng):
    a, b = rng.randrange(13), rng.randrange(13)
    if rng.random() < 0.6 or not b:
        op = "times"
    else:
        a, op = a * b, "divided by"
    user = phrase(rng, a, op, b)
    turn = arithmetic_turn(rng, a, op, b, user)
    turn.key = user  # every pair must be learnt by heart; the phrasing is what is new
    return [turn]


def numbers(rng):
    a, b = operand(rng), operand(rng)
    kind = rng.randrange(5)
    if kind == 0 and a != b:
        big = rng.random() < 0.5
        user = rng.choice(["Which is {w}, {a} or {b}?", "What is {w}, {a} or {b}?",
                           "Is {a} or {b} {w}?",
                           "Which number is {w}: {a} or {b}?"])
        word = rng.choice(["larger", "bigger", "greater"] if big else ["smaller", "less"])
        said = "larger" if big else "smaller"
        pick = max(a, b) if big else min(a, b)
        other = a + b - pick
        return [Turn(user.format(w=word, a=a, b=b), f"{pick} is {said} than {other}.",
                     f"{a} and {b}: {pick} is {said}.",
                     f"compare {a} {b} {big}")]
    if kind == 1:
        user = rng.choice(["Is {a} even or odd?", "Is {a} an even number?", "Is {a} odd?",
                           "Is the number {a} even?"])
        word = "odd" if a % 2 else "even"
        return [Turn(user.format(a=a), f"{a} is {word}.", f"{a} ends in {a % 10}.",
                     user.format(a=a))]
    if kind == 2:
        user = rng.choice(["What comes after {a}?", "Which number comes after {a}?",
                           "What number follows {a}?"])
        return [Turn(user.format(a=a), f"{a + 1} comes after {a}.", f"{a} + 1 = {a + 1}",
                     user.format(a=a))]
    if kind == 3 and a:
        user = rng.choice(["What comes before {a}?", "Which number comes before {a}?"])
        return [Turn(user.format(a=a), f"{a - 1} comes before {a}.", f"{a} - 1 = {a - 1}",
                     user.format(a=a))]
    user = rng.choice(["What is double {a}?", "Double {a}.", "What is twice {a}?"])
    return [Turn(user.format(a=a), f"Twice {a} is {2 * a}.", f"{a} + {a} = {2 * a}",
                 user.format(a=a))]


# (larger, smaller, factor, how many of the larger are asked for, short forms)
UNITS = [("metre", "centimetre", 100, 99, ("m", "cm")), ("kilometre", "metre", 1000, 99,
                                                         ("km", "m")),
         ("centimetre", "millimetre", 10, 99, ("cm", "mm")),
         ("metre", "millimetre", 1000, 99, ("m", "mm")),
         ("kilogram", "gram", 1000, 99, ("kg", "g")), ("tonne", "kilogram", 1000, 99, ("t", "kg")),
         ("gram", "milligram", 1000, 99, ("g", "mg")), ("litre", "millilitre", 1000, 99,
                                                        ("l", "ml")),
         ("euro", "cent", 100, 99, None), ("dollar", "cent", 100, 99, None),
         ("century", "year", 100, 30, None),
         ("decade", "year", 10, 50, None), ("hour", "minute", 60, 12, ("h", "min")),
         ("minute", "second", 60, 12, ("min", "s")), ("day", "hour", 24, 10, None),
         ("week", "day", 7, 12, None),
         ("year", "month", 12, 12, None), ("dozen", "piece", 12, 12, None),
         ("foot", "inch", 12, 12, ("ft", "in")),
         ("yard", "foot", 3, 33, None), ("byte", "bit", 8, 12, None)]
PLURALS = {"century": "centuries", "foot": "feet", "inch": "inches", "dozen": "dozen"}
ASK_UNIT = ["How many {to} are {n} {fr}?", "How many {to} are in {n} {fr}?",
            "How many {to} is {n} {fr}?",
            "Convert {n} {fr} to {to}.", "Convert {n} {fr} into {to}", "What is {n} {fr} in {to}?",
            "{n} {fr} in {to}",
            "{n} {fr} to {to}", "Express {n} {fr} in {to}.", "How much is {n} {fr} in {to}?",
            "{n} {fr} are how many {to}?",
            "How many {to} do {n} {fr} make?", "How many {to} does {n} {fr} have?",
            "How long is {n} {fr} in {to}?"]


def plural(unit, n=2):
    return unit if n == 1 else PLURALS.get(unit, unit + "s")


def units(rng):
    large, small, factor, most, short = rng.choice(UNITS)
    down = rng.random() < 0.65
    fr, to = (large, small) if down else (small, large)

    def turn(n, ask):
        if n % 1 == 0.5 and factor not in (10, 100, 1000):
            n = int(n) + 1
        times = int(n * factor)
        source, target = (n, times) if down else (times, n)
        fr_said, to_said = plural(fr, source), plural(to)
        if short and rng.random() < 0.15:
            fr_said, to_said = short if down else reversed(short)
        elif rng.random() < 0.12:
            fr_said, to_said = fr_said.replace("tre", "ter"), to_said.replace("tre", "ter")
        verb = "is" if source == 1 else "are"
        answer = f"{source} {plural(fr, source)} {verb} {target} {plural(to, target)}."
        user = ask.format(n=source, fr=fr_said, to=to_said)
        if rng.random() < 0.15 and len(fr_said) < 3:
            user = user.replace(f"{source} {fr_said}", f"{source}{fr_said}")
        sign = f"{source} * {factor}" if down else f"{source} / {factor}"
        return Turn(user, answer, f"1 {large} = {factor} {plural(small)}, {sign} = {target}",
                    f"unit {n} {fr} {to} {ask}")

    def amount():
        if rng.random() < 0.12:
            return rng.randrange(min(most, 30)) + 0.5
        return rng.randrange(1, most + 1) if rng.random() < 0.7 else rng.randrange(1, min(most, 12) + 1)

    turns = [turn(amount(), rng.choice(ASK_UNIT))]
    while rng.random() < 0.25 and len(turns) < 3:
        turns.append(turn(amount(), rng.choice(["And {n} {fr}?", "And {n}?", "What about {n} {fr}?",
                                                "And for {n} {fr}?"])))
    return turns


def temperatures(rng):
    celsius = rng.randrange(-8, 21) * 5
    fahrenheit = celsius * 9 // 5 + 32
    if rng.random() < 0.6:
        ask = rng.choice(["How many degrees Fahrenheit are {c} degrees Celsius?",
                          "Convert {c} Celsius to Fahrenheit.",
                          "What is {c} degrees Celsius in Fahrenheit?", "{c} C in F"])
        answer = f"{celsius} degrees Celsius are {fahrenheit} degrees Fahrenheit."
    else:
        ask = rng.choice(["How many degrees Celsius are {f} degrees Fahrenheit?",
                          "Convert {f} Fahrenheit to Celsius.",
                          "What is {f} degrees Fahrenheit in Celsius?", "{f} F in C"])
        answer = f"{fahrenheit} degrees Fahrenheit are {celsius} degrees Celsius."
    user = ask.format(c=celsius, f=fahrenheit)
    return [Turn(user, answer, f"{celsius} C = {fahrenheit} F", user)]


# kind: (column of COUNTRIES, questions, answer)
COUNTRY_FACTS = {
    "capital": (0, ["What is the capital of {}?", "What's the capital of {}?",
                    "Which city is the capital of {}?",
                    "Name the capital of {}.", "What is the capital city of {}?",
                    "Tell me the capital of {}.",
                    "Do you know the capital of {}?", "capital of {}", "{} capital",
                    "What is the name of the capital of {}?",
                    "Can you tell me the capital of {}?", "Which city is {}'s capital?",
                    "What is {}'s capital?"],
                "The capital of {} is {}."),
    "continent": (1, ["On which continent is {}?", "Which continent is {} in?",
                      "What continent is {} on?",
                      "Where is {}?", "Where is {} located?", "In which part of the world is {}?",
                      "continent of {}"], "{} is in {}."),
    "language": (2, ["Which language is spoken in {}?", "What language do people speak in {}?",
                     "What do they speak in {}?", "What is the language of {}?", "language of {}",
                     "Which language do they speak in {}?"], "People in {} speak {}."),
    "currency": (3, ["What is the currency of {}?", "Which currency is used in {}?",
                     "What money do they use in {}?",
                     "How do people pay in {}?", "currency of {}",
                     "What is the money of {} called?"],
                 "The currency of {} is the {}."),
}
FOLLOW_COUNTRY = ["And of {}?", "And {}?", "What about {}?", "And for {}?", "and of {}",
                  "How about {}?", "And in {}?"]
FOLLOW_KIND = {"capital": ["And its capital?", "And the capital?", "What is its capital?"],
               "continent": ["And on which continent is it?", "Where is it?", "And the continent?"],
               "language": ["And the language?", "And which language do they speak there?",
                            "What do they speak there?"],
               "currency": ["And the currency?", "And its currency?", "How do people pay there?"]}


def country_turn(kind, country, ask, key):
    column, _, answer = COUNTRY_FACTS[kind]
    if country not in COUNTRIES:
        text = f"I do not know much about {country}. I am only a tiny demo model."
        return Turn(ask.format(country), text, f"{country} is not in my table.",
                    f"{kind} {key} {country}")
    value = COUNTRIES[country][column]
    if not value:
        return None
    said = answer.format(country, value)
    return Turn(ask.format(country), said[0].upper() + said[1:], f"{kind} of {country}: {value}",
                f"{kind} {key} {country}")


def countries(rng, kind=None):
    kind = kind or rng.choice(["capital", "capital", "capital", "continent", "language",
                               "currency"])
    turns, names = [], list(COUNTRIES)

    def pick():
        return rng.choice(UNKNOWN_COUNTRIES) if rng.random() < 0.08 else rng.choice(names)

    country = pick()
    ask = rng.choice(COUNTRY_FACTS[kind][1])
    turns.append(country_turn(kind, country, ask, ask))
    while turns[-1] and rng.random() < 0.4 and len(turns) < 5:
        if rng.random() < 0.7:
            country, ask = pick(), rng.choice(FOLLOW_COUNTRY)
        else:
            kind = rng.choice(list(COUNTRY_FACTS))
            ask = rng.choice(FOLLOW_KIND[kind])
        turns.append(country_turn(kind, country, ask, ask))
    return [t for t in turns if t] if turns[0] else countries(rng)


def about_country(rng):
    country = rng.choice([c for c in COUNTRIES if COUNTRIES[c][1]])
    capital, continent, language, currency = COUNTRIES[country]
    ask = rng.choice(["Tell me about {}.", "What do you know about {}?",
                      "Tell me something about {}.", "What can you tell me about {}?",
                      "Describe {}.", "Write about {}.", "What is {}?"])
    said = f"{country} is in {continent}. Its capital is {capital}."
    said += f" People there speak {language}." if language else ""
    said += f" The currency is the {currency}." if currency else ""
    return [Turn(ask.format(country), said[0].upper() + said[1:], f"{country}: {capital}",
                 f"about {ask} {country}")]


def capitals_back(rng):
    if rng.random() < 0.35:
        return about_country(rng)
    country = rng.choice([c for c in COUNTRIES if c not in ("England", "the USA")])
    capital = COUNTRIES[country][0]
    ask = rng.choice(["Which country has the capital {}?", "{} is the capital of which country?",
                      "Of which country is {} the capital?", "What country is {} the capital of?",
                      "In which country is {}?",
                      "Where is {}?"])
    said = f"{capital} is the capital of {country}."
    return [Turn(ask.format(capital), said, f"{capital}: {country}", f"back {ask} {capital}")]


TABLES = [
    (OPPOSITES, ["What is the opposite of {}?", "What's the opposite of {}?", "Opposite of {}",
                 "Name the opposite of {}.",
                 "Which word is the opposite of {}?", "Tell me the opposite of {}"],
     "The opposite of {} is {}."),
    (YOUNG, ["What is a young {} called?", "What do you call a baby {}?",
             "What is the young of a {} called?",
             "How is a baby {} called?", "What's a baby {} called?"], "A young {} is called a {}."),
    (SOUNDS, ["What does a {} do when it makes a sound?", "What sound does a {} make?",
              "What noise does a {} make?",
              "How does a {} sound?"], "A {} {}."),
    (LEGS, ["How many legs does a {} have?", "How many legs has a {}?",
            "How many legs are on a {}?",
            "Number of legs of a {}?"], "A {} has {} legs."),
    (SYMBOLS, ["What is the chemical symbol of {}?", "What is the symbol for {}?",
               "Chemical symbol of {}",
               "Which symbol does {} have?"], "The symbol of {} is {}."),
    (COLOURS, ["What colour is {}?", "What color is {}?", "Which colour has {}?",
               "What is the colour of {}?"],
     "The colour of {} is {}."),
]


def grammar(text):
    for vowel in "aeiou":
        text = text.replace(f" a {vowel}", f" an {vowel}").replace(f"A {vowel}", f"An {vowel}")
    return text


def table_facts(rng):
    table, asks, answer = rng.choice(TABLES)
    ask = rng.choice(asks)
    turns = []
    while not turns or (rng.random() < 0.3 and len(turns) < 4):
        word = rng.choice(list(table))
        turns.append(Turn(grammar(ask.format(word)), grammar(answer.format(word, table[word])),
                          f"{word}: {table[word]}",
                          f"table {ask} {word}"))
        ask = rng.choice(["And {}?", "What about {}?", "And of {}?"] if answer.startswith("The")
                         else ["And a {}?", "What about a {}?"])
    return turns


def single_facts(rng):
    asks, answer = rng.choice(SINGLE)
    return [Turn(rng.choice(asks), answer, "I know this one.")]
