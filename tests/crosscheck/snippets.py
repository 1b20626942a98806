"""Templates made at random from snippets: filters, tests, slices, loops, sets, macros, whitespace control.

Left out, because portico differs there on purpose or in ways that no template needs: `random`, bytes and complex
numbers, attributes of Python's objects, errors that Jinja2 makes only of constants.
"""

CONTEXT = {
    "n": 7, "z": 0, "neg": -3, "x": 2.5, "big": 10 ** 12, "huge": 3 ** 80, "yes": True, "no": False, "nil": None, "s": "Hello wörld <&>\n",
    "e": "", "w": "  padded\t", "digits": "0123456789", "list": [3, 1, 2], "names": ["b", "A", "c"], "mixed": [1, "a", None, 2.0, True],
    "empty": [], "d": {"a": 1, "b": [1, 2], "c": {"k": "v"}}, "emoji": "👩‍👩‍👧 é",
    "rows": [{"role": "user", "n": 2, "t": "x"}, {"role": "assistant", "n": 1, "t": "y"}, {"role": "user", "n": 3}],
}
TEXT = ["s", "e", "w", "digits", "emoji", "'it''s'", '"q\\n"', "s ~ n", "names[0]", "rows[0].role"]
NUMBER = ["n", "z", "neg", "x", "big", "huge", "3", "1.5", "list[0]", "list|length", "n // 2", "n % 3", "2 ** 5", "-n", "n / 2"]
LIST = ["list", "names", "mixed", "empty", "rows", "[1, 'a']", "range(5)|list", "d.b", "list + [9]", "s.split()", "(1, 2)", "digits|list"]
ANY = ["nil", "yes", "no", "missing", "d", "d.c", "d.nope", "rows[1]", "{'k': n}", "rows[0]['n']", "list[9]", "not n"]
FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "first", "last", "list", "string", "int", "float", "abs", "round",
           "join(', ')", "join", "tojson", "tojson(indent=2)", "sort", "sort(reverse=true)", "unique|list", "reverse|list", "default('d')",
           "default('d', true)", "replace('l', 'L')", "wordcount", "string|truncate(8)", "string|truncate(5, true, '')", "indent(2)",
           "center(12)", "sum", "min", "max", "map('upper')|list", "map(attribute='role')|list", "selectattr('role', 'equalto', 'user')|list",
           "rejectattr('t', 'defined')|list", "select('string')|list", "reject('none')|list", "groupby('role')|list", "batch(2)|list",
           "slice(2)|list", "dictsort", "items|list", "format(1)", "striptags", "urlencode", "wordwrap(4)", 
           "filesizeformat", "xmlattr", "count", "sum(attribute='n')", "map('int')|list"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable",
         "callable", "even", "odd", "divisibleby(3)", "lower", "upper", "in [1, 7]", "in 'Hello'", "eq 7", "ne 1", "gt 2", "lt 'a'", "sameas none",
         "escaped", "equalto('x')"]
METHODS = [".upper()", ".strip()", ".lstrip('H')", ".split('l')", ".split(maxsplit=1)", ".startswith('H')", ".endswith(('x', '\\n'))",
           ".replace('l', '', 1)", ".find('o')", ".rfind('o')", ".count('l')", ".title()", ".isdigit()", ".splitlines()", ".join(names)",
           ".rstrip()", ".capitalize()", ".items()|list", ".keys()|list", ".values()|list", ".get('a')", ".get('q', 5)", ".index(1)", ".format(1)",
           ".zfill(12)", ".center(20, '*')", ".partition('o')", ".casefold()", ".isalpha()", ".append(1)", ".pop()"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "and", "or", "in", "not in"]
SLICES = ["[0]", "[-1]", "[1:]", "[:2]", "[::-1]", "[1:3]", "[::2]", "[-2:]", "[5:1:-2]", "['a']", "[:n]", "[100]", "['role']"]


def spec(random):
    """What stands behind the colon of a field, often wrong."""
    maybe = lambda chance, *made: random.choice(made) if random.random() < chance else ""
    return (maybe(0.4, "*<", "é>", "^", "=", "0=") + maybe(0.2, *"+- ") + maybe(0.1, "#", "z") + maybe(0.5, "0", "7", "012", "3")
            + maybe(0.15, *",_") + maybe(0.3, ".0", ".3", ".12") + maybe(0.6, *"bcdoxXneEfFgG%sq"))


def formatted(random):
    """A text formatted in one of Python's two ways."""
    values = random.choices(["n", "neg", "x", "big", "yes", "s", "list", "nil", "65", "missing"], k=3)
    if random.random() < 0.5:
        field = lambda: ("{" + random.choice(["", "0", "1", "a", "b[k]", "b.k"]) + random.choice(["", "", "!r", "!s", "!a"])
                         + (":" + spec(random) if random.random() < 0.7 else "") + "}")
        fields = field() + (" " + field() if random.random() < 0.3 else "")
        return f"'{fields}'.format({values[0]}, {values[1]}, a={values[2]}, b=d.c)"
    one = lambda: ("%" + random.choice(["", "", "-", "0", "+", "#", " ", "(a)"]) + random.choice(["", "7", "12", "*"])
                   + random.choice(["", "", ".3", ".3", ".*"]) + random.choice("diuoxXeEfFgGcrsa%q"))
    if random.random() < 0.3:
        return f"'{one()} {one()}' % ({values[0]}, {values[1]})"
    return f"'{one()}' % " + random.choice([values[0], f"({values[0]},)", f"{{'a': {values[0]}}}"])


def operand(random):
    kind = random.random()
    return random.choice(TEXT if kind < 0.35 else NUMBER if kind < 0.55 else LIST if kind < 0.8 else ANY)


def expression(random, depth=0):
    kind = random.randrange(9)
    if depth > 2 or kind == 0:
        return operand(random)
    inner = lambda: expression(random, depth + 1)
    grouped = lambda: f"({inner()})"
    if kind in (1, 2):
        return f"{operand(random)}|{random.choice(FILTERS)}"
    if kind == 3:
        return f"{grouped()}|{random.choice(FILTERS)}|{random.choice(FILTERS)}"
    if kind == 4:
        return f"{operand(random)} is {random.choice(['', 'not '])}{random.choice(TESTS)}"
    if kind == 5:
        return f"({operand(random)}){random.choice(METHODS)}"
    if kind == 6:
        return f"{random.choice(TEXT + LIST + ['n', 'x', 'nil', *ANY[1:]])}{random.choice(SLICES)}"
    if kind == 7:
        return f"{grouped()} {random.choice(OPERATORS)} {grouped()}"
    return f"{inner()} if {grouped()} else {inner()}"


def statement(random, depth=0):
    body = lambda: template(random, depth + 1)
    left, right = random.choice(["{%", "{%-", "{%"]), random.choice(["%}", "-%}", "%}"])
    tag = lambda text: f"{left} {text} {right}"
    kind = random.randrange(10)
    if depth > 2 or kind < 3:
        escaped = random.choice(["|e", "|safe", "|escape|upper"]) if random.random() < 0.1 else ""
        return "{{ (" + expression(random) + ")" + escaped + " }}"
    if kind == 3:
        return f"{tag('if ' + expression(random))}{body()}{tag('elif ' + expression(random))}{body()}{tag('else')}{body()}{tag('endif')}"
    if kind == 4:
        loop = random.choice(["loop.index", "loop.first", "loop.last", "loop.length", "loop.previtem", "loop.cycle('a','b')", "loop.revindex0",
                              "loop.changed(i)"])
        return f"{tag('for i in ' + random.choice(LIST))}{{{{ i }}}}{{{{ {loop} }}}}{body()}{tag('else')}none{tag('endfor')}"
    if kind == 5:
        condition = random.choice(["i", "i is string", "i is number", "loop is defined", "not i"])
        stop = random.choice(["break", "continue"])
        return (f"{tag('for i in ' + random.choice(LIST) + ' if ' + condition)}{{{{ i }}}}"
                f"{tag('if ' + expression(random))}{tag(stop)}{tag('endif')}.{tag('endfor')}")
    if kind == 6:
        return f"{tag('set v = ' + expression(random))}{{{{ v }}}}"
    if kind == 7:
        return f"{tag('set ns = namespace(c=0)')}{tag('for i in ' + random.choice(LIST))}{tag('set ns.c = ns.c + 1')}{tag('endfor')}{{{{ ns.c }}}}"
    if kind == 8:
        return f"{tag('macro m(a, b=' + expression(random, 2) + ')')}<{{{{ a }}}}|{{{{ b }}}}>{tag('endmacro')}{{{{ m({expression(random, 2)}) }}}}"
    return f"{tag('filter ' + random.choice(['upper', 'trim', 'indent(1)', 'title']))}{body()}{tag('endfilter')}"


def template(random, depth=0):
    gaps = ["", " ", "\n", "  \n", "text ", "\n\n  ", "{# note #}", "{#- note -#}", "é"]
    return "".join(random.choice(gaps) + statement(random, depth) for _ in range(random.randint(1, 3))) + random.choice(gaps)
