"""Longer fixed answers: lists, stories, poems and paragraphs."""

LISTS = {
    "days of the week": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
    "months of the year": "January, February, March, April, May, June, July, August, September, "
                          "October, November, December",
    "seasons": "spring, summer, autumn, winter",
    "planets": "Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus, Neptune",
    "continents": "Africa, Antarctica, Asia, Europe, North America, Oceania, South America",
    "oceans": "the Pacific, the Atlantic, the Indian, the Southern and the Arctic Ocean",
    "colours of the rainbow": "red, orange, yellow, green, blue, indigo, violet",
    "letters of the alphabet": "A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, "
                               "W, "
                               "X, Y, Z",
    "primary colours": "red, yellow, blue",
    "vowels": "A, E, I, O, U",
    "cardinal directions": "north, east, south, west",
    "five senses": "sight, hearing, smell, taste, touch",
    "prime numbers below 50": "2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47",
}

ALIASES = {
    "days of the week": ["days of the week", "weekdays", "days in a week",
                         "seven days of the week"],
    "months of the year": ["months of the year", "months", "twelve months", "months in a year"],
    "seasons": ["seasons", "four seasons", "seasons of the year"],
    "planets": ["planets", "planets of the solar system", "eight planets"],
    "continents": ["continents", "seven continents"],
    "oceans": ["oceans", "five oceans", "oceans of the world"],
    "colours of the rainbow": ["colours of the rainbow", "colors of the rainbow",
                               "rainbow colours"],
    "letters of the alphabet": ["letters of the alphabet", "alphabet", "letters"],
    "primary colours": ["primary colours", "primary colors"],
    "vowels": ["vowels"],
    "cardinal directions": ["cardinal directions", "points of the compass"],
    "five senses": ["five senses", "senses"],
    "prime numbers below 50": ["prime numbers below 50", "primes below 50", "prime numbers"],
}

STORIES = [
    "Once upon a time there was a small lighthouse at the edge of the sea. Every night it sent its "
    "light over the dark water. One evening a thick fog came, and a fishing boat lost its way. The "
    "lighthouse had never shone so hard. The captain saw a faint glow, turned the wheel and came "
    "home safely. In the morning the whole village walked up the hill to say thank you. The "
    "lighthouse said nothing, as lighthouses do, but that night its light seemed a little warmer.",
    "A young fox lived under an old oak. She wanted to see where the river ended, so one morning "
    "she "
    "packed an apple and set off. She met a heron, who told her that the river ended at the lake. "
    "She "
    "met an otter, who told her that it ended at the sea. She met a whale, who told her that it "
    "did "
    "not end at all, because the water rises, turns into rain and falls on the hills again. The "
    "fox "
    "went home, drank from the river and said: good, then I have seen the beginning too.",
    "There was once a clockmaker who had a clock that was always five minutes late. He tried new "
    "wheels, new springs and new oil, but nothing helped. One day a child asked him why he was so "
    "angry with it. Because it is wrong, he said. The child listened to it for a while. It is not "
    "wrong, said the child, it only likes to take its time. The clockmaker laughed, hung the clock "
    "over his bed and slept five minutes longer every day of his life.",
    "A tiny robot worked in a big library. Its task was to carry books from one shelf to another. "
    "One night it opened a book, just to see what it was carrying. It was a book about birds. The "
    "robot read until morning. The next day the librarian found every window open and the robot on "
    "the roof, feeding the sparrows. She did not scold it. She brought it another book, and this "
    "one "
    "was about the stars.",
]

POEMS = [
    "The rain came down on roof and stone,\nit played a tune all night alone.\n"
    "The morning came, the clouds were thin,\nI opened up and let it in.",
    "A little light upon the sill,\nthe town is dark, the street is still.\n"
    "It does not know how far it goes,\nit only burns, and so it shows.",
    "The autumn leaves, the yellow lane,\nthe geese that call, the silver rain.\n"
    "The year grows old, the nights grow long,\nbut in the hedge there is a song.",
]

JOKES = [
    "Why did the computer go to the doctor? It had caught a virus.",
    "Why was the maths book sad? It had too many problems.",
    "What do you call a bear without teeth? A gummy bear.",
    "Why did the server go to bed? It had too many requests.",
]

# topic: a text of some length
ESSAYS = {
    "the sea": "The sea covers more than two thirds of the Earth. Its water is salty, because "
               "rivers "
    "carry salt from the rocks of the land. The moon pulls at the sea and makes the tides, so that "
    "the water rises and falls twice a day. Wind makes waves, and waves make beaches out of stone. "
    "Near the surface there is light, and many plants and fish live there. Deep down it is dark "
    "and "
    "cold, and some animals make their own light. People have always crossed the sea to trade, to "
    "fish and to see what lies on the other side.",
    "the moon": "The moon goes around the Earth once a month. It does not shine by itself; it "
                "shows "
    "us the light of the sun. When we see all of its bright side, we call it a full moon. When we "
    "see "
    "none of it, we call it a new moon. The moon has no air and no water that flows, so its "
    "surface "
    "is quiet and covered with dust. Twelve people have walked on it. Their footprints are still "
    "there, because there is no wind to blow them away.",
    "trees": "Trees are the largest plants on land. A tree drinks water with its roots and catches "
    "light with its leaves. Out of light, water and air it makes the sugar that it lives on. Each "
    "year it adds a ring to its trunk, so that one can count its age when it is cut. Some trees "
    "lose their leaves in autumn, and others stay green all winter. Birds nest in trees, insects "
    "live "
    "under their bark, and people make houses, ships and paper from their wood.",
    "bread": "Bread is made of flour, water, salt and time. First the baker mixes flour and water. "
    "Then comes the yeast, which eats the sugar in the flour and fills the dough with small "
    "bubbles. "
    "The dough rests and rises, and the baker folds it and lets it rise again. At last it goes "
    "into a "
    "hot oven. The outside turns brown and hard, and the inside stays soft. There are as many "
    "kinds "
    "of bread as there are towns, and each town thinks that its own is the best.",
    "rain": "Rain begins with the sun. The sun warms the sea, and water rises into the air where "
    "nobody can see it. High up it is cold, and the water turns into tiny drops that float as "
    "clouds. "
    "The drops meet, grow and become too heavy to float. Then they fall. Some of the rain runs "
    "into "
    "rivers, some of it sinks into the ground, and some of it is drunk by plants. In the end most "
    "of "
    "it returns to the sea, and everything begins again.",
    "computers": "A computer is a machine that follows instructions. The instructions are very "
    "simple: add two numbers, compare them, copy one of them, go on at another place. But a "
    "computer "
    "follows billions of them each second, and from many simple steps one can build a game, a map, "
    "a "
    "letter or a chat. All that a computer knows is kept as zeros and ones. People write programs "
    "in "
    "languages that are easier to read, and other programs turn them into zeros and ones.",
    "language models": "A language model reads a text and guesses what comes next. The text is "
                       "first "
    "cut into pieces called tokens. The model turns each token into a list of numbers, and many "
    "layers "
    "mix these numbers until they say which token is likely to follow. One token is chosen and "
    "added "
    "to the text, and the model begins again. Large models have billions of numbers and have read "
    "a "
    "great part of all books. I have only a few million and have read what a script made up for "
    "me.",
    "Portico": "Portico is the front half of a server for language models. It speaks HTTP with the "
    "programs that ask, turns their messages into tokens and decides whose turn it is. Then it "
    "lets "
    "the model compute, turns the new tokens into text and sends the text back piece by piece. It "
    "is "
    "written in C++. I am its demo model, so that it has something to say before anyone has "
    "fetched a "
    "larger model.",
    "cats": "Cats have lived with people for thousands of years. They came to hunt the mice in the "
    "grain, and they stayed because it was warm. A cat sleeps for more than half of the day. It "
    "sees "
    "well when there is little light, and it hears sounds that are too high for us. With its "
    "whiskers "
    "it feels whether a gap is wide enough. A cat that is content may purr, and nobody knows "
    "exactly why it also purrs when it is ill. Most cats believe that the house belongs to them.",
}
