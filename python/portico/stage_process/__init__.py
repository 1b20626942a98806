"""How stages written in Python work; what they see of it is portico/stage.py."""
