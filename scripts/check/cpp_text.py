"""C++ as text, just well enough for limits: blanks out comments and literals, finds functions.

No parser: it counts braces and looks at the words before them. Preprocessor lines are blanked, so code
inside macros is not measured.
"""
import dataclasses
import re

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
CONTROL = re.compile(r"^(?:\}\s*)?(if|for|while|switch|do|else|try|catch)\b")
NOT_NAMES = {"if", "for", "while", "switch", "catch", "return", "alignas", "decltype", "noexcept",
             "requires", "sizeof", "__attribute__", "DT_GUARDED_BY"}


def blank(match):
    """Same length, same lines, nothing but spaces."""
    return re.sub(r"[^\n]", " ", match.group(0))


def code_only(text):
    """The text without comments, literals and preprocessor lines; every position stays where it was."""
    return PREPROCESSOR.sub(blank, TOKEN.sub(blank, text))


@dataclasses.dataclass
class Function:
    name: str
    line: int         # Line of the first word of its signature, from 1.
    lines: int        # Number of lines from there to its closing brace.
    parameters: int
    nesting: int      # The deepest control block inside; a block in a function counts 1.


@dataclasses.dataclass
class Type:
    name: str
    line: int
    virtuals: int


def split_top(text):
    """Pieces of a parameter list, cut at commas outside brackets."""
    pieces, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{<":
            depth += 1
        elif c in ")]}>" and not (c == ">" and text[i - 1] == "-"):
            depth -= 1
        elif c == "," and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    pieces.append(text[start:])
    return [p for p in pieces if p.strip() and p.strip() != "void"]


def signature_of(head):
    """(name, number of parameters) if the words before a brace are a function's, else None."""
    # The parameter list of a template is removed, because it may contain parentheses.
    head = re.sub(r"^\s*(template\s*<[^{};]*?>\s*(?=[\w:\[~]))+", " ", head)
    for opening in re.finditer(r"(operator\s*\(\s*\)|operator\s*[^\s\w(]+|~?\w+)\s*\(", head):
        name = opening[1]
        if name in NOT_NAMES or "=" in re.sub(r"operator\s*\S+", "", head[:opening.start()]):
            if name in NOT_NAMES:
                continue
            return None
        depth, end = 0, opening.end() - 1
        for end in range(opening.end() - 1, len(head)):
            depth += {"(": 1, ")": -1}.get(head[end], 0)
            if depth == 0:
                break
        return name, len(split_top(head[opening.end():end]))
    return None


def kind_of(head, inside_function):
    words = head.strip()
    if inside_function:
        return "control" if CONTROL.match(words) else "block"
    if re.match(r'(inline\s+)?namespace\b|extern\s*$', words):
        return "namespace"
    if re.match(r"(template\s*<.*>\s*)?(typedef\s+)?(class|struct|union|enum)\b[^()=]*(\(|$)", words,
                re.DOTALL) and not re.search(r"\)\s*(const|noexcept|override|final|->.*)?\s*$", words):
        return "type"
    return "function" if signature_of(words) else "block"


def read(text):
    """(functions, types) of a source text."""
    code = code_only(text)
    functions, types, stack = [], [], []
    start = 0  # Position where the words before the next brace begin.
    round_depth = 0
    for i, c in enumerate(code):
        if c in "()":
            round_depth += 1 if c == "(" else -1
        elif c == "{":
            head = code[start:i]
            inside = any(s["kind"] == "function" for s in stack)
            kind = kind_of(head, inside)
            first = start + len(head) - len(head.lstrip())
            if not inside and kind == "function" and ends_in_initializer(head):
                kind = "member"  # In `: a_{1}, b_(2) {` the brace belongs to a member; the body follows.
            stack.append({"kind": kind, "first": first, "head": head, "virtuals": 0, "deepest": 0,
                          "start": start, "round": round_depth})
            round_depth = 0
            if kind == "control":
                depth = sum(s["kind"] == "control" for s in stack)
                for s in stack:
                    s["deepest"] = max(s["deepest"], depth)
            start = i + 1
        elif c == "}" and stack:
            top = stack.pop()
            round_depth = top["round"]
            line = code.count("\n", 0, top["first"]) + 1
            if top["kind"] == "function":
                name, parameters = signature_of(top["head"])
                functions.append(Function(name, line, code.count("\n", top["first"], i) + 1,
                                          parameters, top["deepest"]))
            elif top["kind"] == "type":
                words = re.sub(r"^\s*template\s*<.*>(?=\s*(class|struct|union)\b)", "", top["head"],
                               flags=re.DOTALL)
                name = re.search(r"(?:class|struct|union|enum)\s+(?:class\s+)?(\w+)", words)
                types.append(Type(name[1] if name else "?", line, top["virtuals"]))
            # The words continue after a member's brace, or a brace inside parentheses.
            start = top["start"] if top["kind"] == "member" or round_depth > 0 else i + 1
        elif c == ";" and round_depth == 0:
            if stack and stack[-1]["kind"] == "type" and re.match(r"\s*virtual\b[^~]*$", code[start:i]):
                stack[-1]["virtuals"] += 1
            start = i + 1
        elif c == ":" and re.search(r"^\s*(public|private|protected|case\b.*|default)\s*$",
                                    code[start:i]):
            start = i + 1
    return functions, types


def ends_in_initializer(head):
    """True if the words end within a constructor's list of members: `A() : a_(1), b_` or `A() : b_`."""
    after = re.search(r"\)\s*(noexcept\s*)?:(?!:)(.*)$", head, re.DOTALL)
    return bool(after and re.search(r"[\w>]\s*$", after[2]))
