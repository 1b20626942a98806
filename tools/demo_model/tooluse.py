"""Conversations in which tools are given. Names, parameters and descriptions vary, so that the model
reads them from the system turn instead of knowing them by heart."""

import json

from skills import operand
from turn import Turn
from words import NOUNS, VERBS, any_city, any_name, any_word, made_up_word

WEATHER = ["sunny", "cloudy", "rainy", "foggy", "windy", "snowy", "clear"]
LANGUAGES = ["French", "German", "Spanish", "Italian", "Dutch", "Polish", "Greek", "Japanese"]
ZONES = ["Europe/Paris", "Europe/London", "Asia/Tokyo", "America/New_York", "UTC", "Africa/Cairo",
         "Europe/Berlin"]


def _clock(rng):
    return f"{rng.randrange(24):02d}:{rng.choice([0, 5, 10, 15, 20, 30, 40, 45, 55]):02d}"


def _weather(rng, value):
    sky, degrees = rng.choice(WEATHER), rng.randrange(-10, 40)
    fields = [(rng.choice(["temperature", "temp", "temp_c", "degrees", "celsius"]), degrees),
              (rng.choice(["condition", "conditions", "sky", "weather", "description"]), sky)]
    if rng.random() < 0.3:
        fields.append(("city", value))
    if rng.random() < 0.2:
        fields.append(rng.choice([("humidity", rng.randrange(20, 99)), ("wind", rng.randrange(40)),
                                  ("unit", "celsius")]))
    rng.shuffle(fields)
    plain = rng.choice([f"{sky}, {degrees} degrees", f"{degrees} C, {sky}",
                        f"{degrees}\u00b0C and {sky}", f"{sky.capitalize()}, {degrees} C"])
    reply = json.dumps(dict(fields)) if rng.random() < 0.65 else plain
    return reply, f"The weather in {value} is {sky} with {degrees} degrees."


def _plain(answer, make):
    def reply(rng, value):
        result = make(rng)
        text = rng.choice([str(result), json.dumps({"result": result}),
                           json.dumps({rng.choice(["value", "output", "data"]): result})])
        return text, answer.format(value=value, result=result)
    return reply


# concept: (tool names, parameter names, descriptions, questions, how to draw a value, how to reply)
CONCEPTS = {
    "weather": (["get_weather", "weather", "current_weather", "get_current_weather",
                 "weather_lookup", "fetch_weather"],
                ["city", "location", "place", "town"], ["Get the weather of a city",
                                                        "Current weather for a place",
                                                        "Returns the weather"],
                ["What is the weather in {v}?", "How is the weather in {v}?",
                 "What's the weather like in {v}?", "Weather in {v}", "Is it warm in {v}?",
                 "Will it rain in {v}?", "Tell me the weather in {v}.", "How warm is it in {v}?",
                 "What is the weather in {v} today?"], any_city, _weather),
    "time": (["get_time", "current_time", "time_in", "clock", "get_current_time"],
             ["city", "place", "location"],
             ["Get the time in a city", "Current local time", "Tells the time"],
             ["What time is it in {v}?", "What is the time in {v}?", "Tell me the time in {v}.",
              "How late is it in {v}?", "Time in {v}?"],
             any_city, _plain("It is {result} in {value}.", _clock)),
    "zone": (["get_time", "current_time", "clock", "time_now"], ["timezone", "tz", "zone"],
             ["Get the time in a time zone", "Current time of a timezone", "Time for a zone"],
             ["What time is it in {v}?", "What is the time in {v}?", "Tell me the time in {v}.",
              "Current time in {v}"],
             lambda rng: rng.choice(ZONES), _plain("It is {result} in {value}.", _clock)),
    "search": (["search", "web_search", "search_web", "google", "find_pages"],
               ["query", "q", "text", "search_term"],
               ["Search the web", "Find pages on the internet", "Looks something up on the web"],
               ["Search the web for {v}.", "Search for {v}", "Look up {v} on the internet.",
                "Find pages about {v}.", "Look up {v}."],
               lambda rng: " ".join(any_word(rng) for _ in range(rng.randrange(1, 4))),
               _plain("I found this about {value}: {result}.",
                      lambda rng: f"{any_word(rng)} {any_word(rng)} {any_word(rng)}")),
    "stock": (["get_stock_price", "stock_price", "stock", "quote"], ["symbol", "ticker", "company"],
              ["Get the price of a stock", "Current share price", "Stock quote"],
              ["What is the stock price of {v}?", "How much is a share of {v}?",
               "Price of {v} stock?", "Get the stock price of {v}."],
              lambda rng: made_up_word(rng).upper() if rng.random() < 0.5 else made_up_word(rng).capitalize(),
              _plain("A share of {value} costs {result} dollars.",
                     lambda rng: rng.randrange(1, 900))),
    "light": (["switch_light", "turn_on_light", "light_on", "lamp"], ["room", "place", "where"],
              ["Turn on the light in a room", "Switches a lamp on"],
              ["Turn on the light in the {v}.", "Switch on the lamp in the {v}",
               "Light on in the {v}, please.", "Make it bright in the {v}."],
              lambda rng: rng.choice("kitchen bathroom bedroom cellar office garage garden hall "
                                     "attic".split()),
              _plain("The light in the {value} is on.", lambda rng: rng.choice(["ok", "done",
                                                                                "on"]))),
    "music": (["play_music", "play_song", "music", "play"], ["song", "title", "track"],
              ["Play a song", "Starts music"],
              ["Play {v}.", "Play the song {v}.", "I want to hear {v}.", "Please play {v}"],
              lambda rng: " ".join(any_word(rng).capitalize() for _ in range(rng.randrange(1, 4))),
              _plain("I am playing {value}.", lambda rng: rng.choice(["ok", "playing",
                                                                      "started"]))),
    "contact": (["find_contact", "get_phone_number", "phone_book", "lookup_contact"],
                ["name", "person", "contact"],
                ["Find the phone number of a person", "Phone book"],
                ["What is the phone number of {v}?", "Find the number of {v}.",
                 "What is {v}'s phone number?", "Look up {v} in the phone book."],
                any_name, _plain("The number of {value} is {result}.",
                                 lambda rng: f"{rng.randrange(100, 1000)}-{rng.randrange(1000, 10000)}")),
    "user": (["get_user", "find_user", "user_info", "lookup_user"], ["id", "user_id"],
             ["Get a user by id", "Returns the user with a number"],
             ["Who is user {v}?", "Get user {v}.", "Find the user with id {v}.",
              "Show me user {v}"],
             lambda rng: rng.randrange(1, 1000), _plain("User {value} is {result}.", any_name)),
    "define": (["define", "dictionary", "get_definition", "define_word"], ["word", "term"],
               ["Define a word", "Looks a word up in a dictionary"],
               ["What does {v} mean?", "Define {v}.", "What is the meaning of {v}?",
                "Look up the word {v}."], any_word,
               _plain("{value} means {result}.", lambda rng: f"a {any_word(rng)} {any_word(rng)}")),
}
TWO = {
    "translate": (["translate", "translate_text", "translator"],
                  [("text", "language"), ("text", "target"), ("sentence", "to")],
                  ["Translate a text", "Translates into a language"],
                  ["Translate {a} into {b}.", "Translate \"{a}\" to {b}",
                   "How do you say {a} in {b}?", "What is {a} in {b}?"],
                  lambda rng: (" ".join(any_word(rng) for _ in range(rng.randrange(1, 4))),
                               rng.choice(LANGUAGES)),
                  lambda rng, a, b: f"In {b} it is {{result}}."),
    "message": (["send_message", "send_email", "message", "send_text"],
                [("to", "text"), ("recipient", "body"), ("name", "message")],
                ["Send a message to a person", "Sends a text"],
                ["Send {a} a message: {b}", "Tell {a}: {b}", "Write to {a}: {b}",
                 "Message {a} that {b}"],
                lambda rng: (any_name(rng),
                             " ".join(any_word(rng) for _ in range(rng.randrange(2, 6)))),
                lambda rng, a, b: f"I have sent your message to {a}."),
    "alarm": (["set_alarm", "set_timer", "remind", "create_reminder"],
              [("time", "label"), ("at", "text"), ("time", "text")],
              ["Set a reminder", "Reminds the user at a time"],
              ["Remind me at {a} to {b}.", "Set a reminder at {a}: {b}", "At {a} remind me to {b}"],
              lambda rng: (_clock(rng),
                           f"{rng.choice(['call', 'buy', 'wash', 'fix', 'find'])} {any_word(rng)}"),
              lambda rng, a, b: f"I will remind you at {a}."),
}
CALCULATOR = (["calculator", "calculate", "calc", "evaluate", "compute"],
              ["expression", "expr", "input", "formula"],
              ["Evaluate an arithmetic expression", "A calculator", "Calculates a formula"])


def schema(rng, name, text, params, kinds):
    properties = {}
    for param, kind in zip(params, kinds):
        properties[param] = {"type": kind}
        if rng.random() < 0.3:
            said = f"The {param}" if rng.random() < 0.6 else f"{any_word(rng)} {any_word(rng)}"
            properties[param]["description"] = said[0].upper() + said[1:]
    body = {"type": "object", "properties": properties}
    if rng.random() < 0.8:
        body["required"] = list(params)
    if rng.random() < 0.2:
        body["additionalProperties"] = False
    function = {"name": name, "parameters": body}
    if rng.random() < 0.85:
        function = {"name": name, "description": text + rng.choice(["", ".", "."]),
                    "parameters": body}
    if rng.random() < 0.1:
        function["strict"] = True
    return {"type": "function", "function": function}


def any_action(rng):
    """A tool that nobody has seen before, and a question with its words."""
    verb, noun, kind = rng.choice(VERBS), rng.choice(NOUNS), rng.randrange(3)
    value = [rng.randrange(1, 10000), any_name(rng), any_word(rng)][kind]
    param = rng.choice([["id", noun + "_id", "number", noun], ["name", "person", "user"],
                        [noun, "value", "what", "item"]][kind])
    user = rng.choice([["{v} {n} {x}.", "Please {v} {n} {x}.", "Can you {v} {n} number {x}?",
                        "{v} the {n} with id {x}"],
                       ["{v} the {n} of {x}.", "Please {v} {x}'s {n}.", "{v} {n} for {x}",
                        "Can you {v} a {n} for {x}?"],
                       ["{v} the {n} {x}.", "{v} {n} {x}, please.",
                        "Please {v} the {n} called {x}."]][kind])
    user = user.format(v=verb, n=noun, x=value)
    name = rng.choice([f"{verb}_{noun}", f"{verb}{noun.capitalize()}", f"{noun}_{verb}",
                       f"{verb}-{noun}"])
    result = rng.choice(["ok", "done", made_up_word(rng), any_word(rng), rng.randrange(1000)])
    reply = rng.choice([str(result), json.dumps({"result": result}),
                        json.dumps({rng.choice(["status", noun, "value"]): result})])
    text = rng.choice([f"{verb.capitalize()} a {noun}", f"{verb.capitalize()}s the {noun}",
                       f"Use it to {verb} a {noun}"])
    tool = schema(rng, name, text, [param], ["string" if kind else "integer"])
    user = user[0].upper() + user[1:]
    return tool, user, {param: value}, reply, f"The tool {name} says: {result}.", f"tool {name} {value}"


def _use(rng, concept):
    """One tool and an exchange that needs it: (tool, question, arguments, tool's reply, answer, key)."""
    if concept == "action":
        return any_action(rng)
    if concept == "calculator":
        tools, params, texts = CALCULATOR
        op = rng.choice(["plus", "minus", "times"])
        a, b = operand(rng), operand(rng)
        if rng.random() < 0.4:
            a, b = rng.randrange(1000), rng.randrange(1000)
        result = {"plus": a + b, "minus": a - b, "times": a * b}[op]
        user = rng.choice(["What is {a} {op} {b}?", "Calculate {a} {s} {b}.", "{a} {s} {b}",
                           "How much is {a} {op} {b}?", "{a} {op} {b} = ?"])
        sign = {"plus": "+", "minus": "-", "times": "*"}[op]
        params, values, kinds = [rng.choice(params)], [f"{a} {sign} {b}"], ["string"]
        user = user.format(a=a, op=op, b=b, s=sign)
        reply, answer = rng.choice([str(result),
                                    json.dumps({"result": result})]), f"{a} {op} {b} is {result}."
    elif concept in TWO:
        tools, pairs, texts, asks, draw, say = TWO[concept]
        params, values = list(rng.choice(pairs)), draw(rng)
        kinds = ["string", "string"]
        user = rng.choice(asks).format(a=values[0], b=values[1])
        result = (made_up_word(rng) + " " + made_up_word(rng) if concept == "translate"
                  else rng.choice(["ok", "done", "sent"]))
        reply = rng.choice([result, json.dumps({"result": result})])
        answer = say(rng, *values).format(result=result)
    else:
        tools, names, texts, asks, draw, replies = CONCEPTS[concept]
        params, values = [rng.choice(names)], [draw(rng)]
        kinds = ["integer" if concept == "user" else "string"]
        user = rng.choice(asks).format(v=values[0])
        reply, answer = replies(rng, values[0])
    name = rng.choice(tools)
    if rng.random() < 0.15:
        name = rng.choice([made_up_word(rng), name + "_" + made_up_word(rng),
                           name.replace("_", "").upper()])
    tool = schema(rng, name, rng.choice(texts), params, kinds)
    if rng.random() < 0.06:
        result = rng.choice(["not found", "timeout", "no access", "unknown " + params[0],
                             "internal error"])
        reply, answer = json.dumps({"error": result}), f"The tool failed: {result}."
    arguments, answer = dict(zip(params, values)), answer[0].upper() + answer[1:]
    return tool, user, arguments, reply, answer, f"tool {concept} {values}"


ALL = [*CONCEPTS, *TWO, "calculator", "calculator", "weather", "weather", "action", "action",
       "action"]


def call_turn(user, calls, replies, answer, key):
    said = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
    text = "\n".join('<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
                     % (n, json.dumps(a, ensure_ascii=False))
                     for n, a in calls)
    return Turn(user, text, f"The tool {calls[0][0]} fits.", key, exact=True,
                messages=[{"role": "user", "content": user},
                          {"role": "assistant", "content": "", "tool_calls": said},
                          *({"role": "tool", "content": reply} for reply in replies),
                          {"role": "assistant", "content": answer}])


def two_calls(rng, concept, name, param):
    """A question about two things, answered by two calls at once."""
    _, _, _, asks, draw, replies = CONCEPTS[concept]
    values = [draw(rng), draw(rng)]
    ask = rng.choice(asks)
    both = rng.choice(["{} and {}", "{} and in {}"] if concept == "weather" else ["{} and {}"])
    user = ask.format(v=both.format(*values))
    answers = [replies(rng, value) for value in values]
    said = " ".join(answer[0].upper() + answer[1:] for _, answer in answers)
    return call_turn(user, [(name, {param: value}) for value in values],
                     [reply for reply, _ in answers], said, f"two {values}")


def tool_episode(rng):
    """Some tools, one to three questions, most of which need one of them, and what the tools are for."""
    chosen = list(dict.fromkeys(rng.choice(ALL) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 4]))))
    if "time" in chosen and "zone" in chosen:
        chosen.remove("zone")
    tools, turns, seen = [], [], set()
    for concept in chosen:
        tool, user, arguments, reply, answer, key = _use(rng, concept)
        name = tool["function"]["name"]
        if name in seen:
            continue
        seen.add(name)
        tools.append(tool)
        if concept in ("weather", "time", "contact", "stock") and rng.random() < 0.2:
            turns.append(two_calls(rng, concept, name, next(iter(arguments))))
        else:
            turns.append(call_turn(user, [(name, arguments)], [reply], answer, key))
    rng.shuffle(tools)
    rng.shuffle(turns)
    turns = turns[:rng.choice([1, 1, 2])]
    if rng.random() < 0.05:
        names = [tool["function"]["name"] for tool in tools]
        ask = rng.choice(["Which tools do you have?", "What tools can you use?", "List your tools.",
                          "What tools are there?"])
        turns.insert(0, Turn(ask, f"I can use these tools: {', '.join(names)}.",
                             "The tools are listed above.", f"tools {names}"))
    return tools, turns, set(chosen)
