"""Asks an exported folder one question after another, greedily. --think turns the think mode on.

    python ask.py ../../models/demo "What is 7 plus 5?" "And minus 3?"
"""

import sys
from pathlib import Path

from conversations import render
from evaluate import Greedy


def main():
    think = "--think" in sys.argv
    folder, *asked = [a for a in sys.argv[1:] if a != "--think"]
    greedy, messages = Greedy(Path(folder)), []
    for question in asked:
        messages.append({"role": "user", "content": question})
        answer = greedy.answer(render(messages, None, add_generation_prompt=True,
                                      enable_thinking=think))
        messages.append({"role": "assistant", "content": answer})
        print(f"> {question}\n{answer}\n")


if __name__ == "__main__":
    main()
