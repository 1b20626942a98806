"""The tables from which questions about facts are made."""

# country: (capital, continent, language, currency); an empty string is not asked for.
COUNTRIES = {
    "France": ("Paris", "Europe", "French", "euro"),
    "Spain": ("Madrid", "Europe", "Spanish", "euro"),
    "Italy": ("Rome", "Europe", "Italian", "euro"),
    "Germany": ("Berlin", "Europe", "German", "euro"),
    "Portugal": ("Lisbon", "Europe", "Portuguese", "euro"),
    "Austria": ("Vienna", "Europe", "German", "euro"),
    "Greece": ("Athens", "Europe", "Greek", "euro"),
    "Poland": ("Warsaw", "Europe", "Polish", "zloty"),
    "Hungary": ("Budapest", "Europe", "Hungarian", "forint"),
    "Sweden": ("Stockholm", "Europe", "Swedish", "krona"),
    "Norway": ("Oslo", "Europe", "Norwegian", "krone"),
    "Denmark": ("Copenhagen", "Europe", "Danish", "krone"),
    "Finland": ("Helsinki", "Europe", "Finnish", "euro"),
    "Iceland": ("Reykjavik", "Europe", "Icelandic", "krona"),
    "Ireland": ("Dublin", "Europe", "English", "euro"),
    "the United Kingdom": ("London", "Europe", "English", "pound"),
    "England": ("London", "Europe", "English", "pound"),
    "Scotland": ("Edinburgh", "Europe", "English", "pound"),
    "Wales": ("Cardiff", "Europe", "English", "pound"),
    "the Netherlands": ("Amsterdam", "Europe", "Dutch", "euro"),
    "Belgium": ("Brussels", "Europe", "", "euro"),
    "Luxembourg": ("Luxembourg", "Europe", "", "euro"),
    "Switzerland": ("Bern", "Europe", "", "franc"),
    "Czechia": ("Prague", "Europe", "Czech", "koruna"),
    "Slovakia": ("Bratislava", "Europe", "Slovak", "euro"),
    "Slovenia": ("Ljubljana", "Europe", "Slovene", "euro"),
    "Croatia": ("Zagreb", "Europe", "Croatian", "euro"),
    "Serbia": ("Belgrade", "Europe", "Serbian", "dinar"),
    "Romania": ("Bucharest", "Europe", "Romanian", "leu"),
    "Bulgaria": ("Sofia", "Europe", "Bulgarian", ""),
    "Albania": ("Tirana", "Europe", "Albanian", "lek"),
    "Estonia": ("Tallinn", "Europe", "Estonian", "euro"),
    "Latvia": ("Riga", "Europe", "Latvian", "euro"),
    "Lithuania": ("Vilnius", "Europe", "Lithuanian", "euro"),
    "Ukraine": ("Kyiv", "Europe", "Ukrainian", "hryvnia"),
    "Russia": ("Moscow", "", "Russian", "rouble"),
    "Malta": ("Valletta", "Europe", "Maltese", "euro"),
    "Turkey": ("Ankara", "", "Turkish", "lira"),
    "China": ("Beijing", "Asia", "Chinese", "yuan"),
    "Japan": ("Tokyo", "Asia", "Japanese", "yen"),
    "South Korea": ("Seoul", "Asia", "Korean", "won"),
    "North Korea": ("Pyongyang", "Asia", "Korean", "won"),
    "India": ("New Delhi", "Asia", "", "rupee"),
    "Pakistan": ("Islamabad", "Asia", "Urdu", "rupee"),
    "Nepal": ("Kathmandu", "Asia", "Nepali", "rupee"),
    "Bangladesh": ("Dhaka", "Asia", "Bengali", "taka"),
    "Thailand": ("Bangkok", "Asia", "Thai", "baht"),
    "Vietnam": ("Hanoi", "Asia", "Vietnamese", "dong"),
    "Indonesia": ("Jakarta", "Asia", "Indonesian", "rupiah"),
    "Malaysia": ("Kuala Lumpur", "Asia", "Malay", "ringgit"),
    "the Philippines": ("Manila", "Asia", "", "peso"),
    "Mongolia": ("Ulaanbaatar", "Asia", "Mongolian", ""),
    "Iran": ("Tehran", "Asia", "Persian", "rial"),
    "Iraq": ("Baghdad", "Asia", "Arabic", "dinar"),
    "Saudi Arabia": ("Riyadh", "Asia", "Arabic", "riyal"),
    "Jordan": ("Amman", "Asia", "Arabic", "dinar"),
    "Lebanon": ("Beirut", "Asia", "Arabic", "pound"),
    "Qatar": ("Doha", "Asia", "Arabic", "riyal"),
    "Egypt": ("Cairo", "Africa", "Arabic", "pound"),
    "Morocco": ("Rabat", "Africa", "Arabic", "dirham"),
    "Algeria": ("Algiers", "Africa", "Arabic", "dinar"),
    "Tunisia": ("Tunis", "Africa", "Arabic", "dinar"),
    "Kenya": ("Nairobi", "Africa", "Swahili", "shilling"),
    "Ethiopia": ("Addis Ababa", "Africa", "", "birr"),
    "Nigeria": ("Abuja", "Africa", "English", "naira"),
    "Ghana": ("Accra", "Africa", "English", "cedi"),
    "Senegal": ("Dakar", "Africa", "French", "franc"),
    "Uganda": ("Kampala", "Africa", "", "shilling"),
    "the United States": ("Washington", "North America", "English", "dollar"),
    "the USA": ("Washington", "North America", "English", "dollar"),
    "Canada": ("Ottawa", "North America", "", "dollar"),
    "Mexico": ("Mexico City", "North America", "Spanish", "peso"),
    "Cuba": ("Havana", "North America", "Spanish", "peso"),
    "Jamaica": ("Kingston", "North America", "English", "dollar"),
    "Panama": ("Panama City", "North America", "Spanish", ""),
    "Brazil": ("Brasilia", "South America", "Portuguese", "real"),
    "Argentina": ("Buenos Aires", "South America", "Spanish", "peso"),
    "Chile": ("Santiago", "South America", "Spanish", "peso"),
    "Peru": ("Lima", "South America", "Spanish", "sol"),
    "Colombia": ("Bogota", "South America", "Spanish", "peso"),
    "Venezuela": ("Caracas", "South America", "Spanish", "bolivar"),
    "Ecuador": ("Quito", "South America", "Spanish", "dollar"),
    "Uruguay": ("Montevideo", "South America", "Spanish", "peso"),
    "Australia": ("Canberra", "Oceania", "English", "dollar"),
    "New Zealand": ("Wellington", "Oceania", "English", "dollar"),
}

# Real countries the model is taught not to know, so that it admits it for others as well.
UNKNOWN_COUNTRIES = (
    "Zambia Zimbabwe Botswana Namibia Angola Gabon Togo Benin Mali Niger Chad Sudan Eritrea "
    "Somalia "
    "Rwanda Burundi Malawi Lesotho Liberia Gambia Guinea Mauritius Madagascar Tonga Samoa Fiji "
    "Nauru "
    "Palau Tuvalu Kiribati Vanuatu Bhutan Brunei Laos Myanmar Cambodia Oman Yemen Kuwait Bahrain "
    "Armenia Georgia Moldova Belarus Kosovo Andorra Monaco Honduras Guatemala Nicaragua Belize "
    "Haiti "
    "Barbados Grenada Suriname Guyana Bolivia Paraguay").split()

OPPOSITES = dict(pair.split(":") for pair in (
    "hot:cold cold:hot big:small small:big fast:slow slow:fast up:down down:up left:right "
    "right:left "
    "light:dark dark:light day:night night:day old:young young:old high:low low:high open:closed "
    "closed:open full:empty empty:full early:late late:early easy:difficult difficult:easy "
    "hard:soft "
    "soft:hard happy:sad sad:happy rich:poor poor:rich strong:weak weak:strong long:short "
    "short:long "
    "wet:dry dry:wet loud:quiet quiet:loud near:far far:near clean:dirty dirty:clean true:false "
    "false:true good:bad bad:good inside:outside outside:inside above:below below:above begin:end "
    "thick:thin thin:thick wide:narrow narrow:wide heavy:light sweet:sour warm:cool love:hate "
    "win:lose buy:sell give:take push:pull yes:no black:white white:black").split())

YOUNG = dict(pair.split(":") for pair in (
    "dog:puppy cat:kitten cow:calf horse:foal sheep:lamb goat:kid pig:piglet duck:duckling "
    "goose:gosling hen:chick lion:cub bear:cub frog:tadpole deer:fawn kangaroo:joey swan:cygnet "
    "owl:owlet elephant:calf whale:calf wolf:cub").split())

SOUNDS = dict(pair.split(":") for pair in (
    "dog:barks cat:meows cow:moos sheep:bleats pig:grunts duck:quacks horse:neighs lion:roars "
    "wolf:howls owl:hoots bee:buzzes frog:croaks mouse:squeaks snake:hisses").split())

LEGS = dict(pair.split(":") for pair in (
    "dog:4 cat:4 cow:4 horse:4 spider:8 ant:6 bee:6 fly:6 bird:2 duck:2 snake:0 fish:0 human:2 "
    "crab:10 "
    "elephant:4 lion:4 beetle:6 butterfly:6 sheep:4 chicken:2 frog:4 octopus:0 worm:0").split())

SYMBOLS = dict(pair.split(":") for pair in (
    "hydrogen:H helium:He carbon:C nitrogen:N oxygen:O sodium:Na iron:Fe copper:Cu silver:Ag "
    "gold:Au "
    "lead:Pb mercury:Hg tin:Sn zinc:Zn calcium:Ca potassium:K chlorine:Cl neon:Ne sulfur:S "
    "uranium:U lithium:Li silicon:Si magnesium:Mg aluminium:Al nickel:Ni").split())

COLOURS = dict(pair.split(":") for pair in (
    "grass:green snow:white coal:black banana:yellow tomato:red sky:blue lemon:yellow milk:white "
    "blood:red chocolate:brown carrot:orange cherry:red night:black sun:yellow leaf:green").split())

# (questions, answer)
SINGLE = [
    (["Who wrote Romeo and Juliet?", "Who wrote Hamlet?", "Who is the author of Hamlet?"],
     "William Shakespeare wrote it."),
    (["Who wrote Don Quixote?", "Who is the author of Don Quixote?"],
     "Miguel de Cervantes wrote it."),
    (["Who painted the Mona Lisa?", "Who is the painter of the Mona Lisa?"],
     "Leonardo da Vinci painted the Mona Lisa."),
    (["What is the largest planet?", "Which planet is the biggest?", "What's the biggest planet?"],
     "Jupiter is the largest planet."),
    (["What is the smallest planet?", "Which planet is the smallest?"],
     "Mercury is the smallest planet."),
    (["Which planet is closest to the sun?", "What is the nearest planet to the sun?"],
     "Mercury is closest to the sun."),
    (["Which planet is called the red planet?", "What is the red planet?"],
     "Mars is the red planet."),
    (["What is the highest mountain?", "What is the tallest mountain in the world?",
      "Which mountain is the highest on Earth?"], "Mount Everest is the highest mountain."),
    (["What is the largest ocean?", "Which ocean is the biggest?"],
     "The Pacific is the largest ocean."),
    (["What is the longest river in Africa?", "Which river in Africa is the longest?"],
     "The Nile is the longest river in Africa."),
    (["What is the largest animal?", "Which animal is the biggest?"],
     "The blue whale is the largest animal."),
    (["What is the fastest land animal?", "Which animal runs fastest?"],
     "The cheetah is the fastest land animal."),
    (["What is the tallest animal?", "Which animal is the tallest?"],
     "The giraffe is the tallest animal."),
    (["How many continents are there?", "How many continents does the Earth have?"],
     "There are 7 continents."),
    (["How many planets are there?", "How many planets are in the solar system?"],
     "There are 8 planets in the solar system."),
    (["How many days are in a year?", "How many days does a year have?", "How long is a year?"],
     "A year has 365 days, and a leap year has 366."),
    (["How many months are in a year?", "How many months does a year have?"],
     "A year has 12 months."),
    (["How many days are in a week?", "How many days does a week have?"], "A week has 7 days."),
    (["How many letters are in the alphabet?", "How many letters does the English alphabet have?"],
     "The English alphabet has 26 letters."),
    (["How many sides does a triangle have?", "How many corners has a triangle?"],
     "A triangle has 3 sides."),
    (["How many sides does a square have?", "How many sides has a square?"],
     "A square has 4 sides."),
    (["How many sides does a hexagon have?", "How many sides has a hexagon?"],
     "A hexagon has 6 sides."),
    (["At what temperature does water boil?", "When does water boil?",
      "What is the boiling point of water?"], "Water boils at 100 degrees Celsius."),
    (["At what temperature does water freeze?", "When does water freeze?",
      "What is the freezing point of water?"], "Water freezes at 0 degrees Celsius."),
    (["What is the formula of water?", "What is the chemical formula for water?", "What is H2O?"],
     "Water is H2O."),
    (["Who was the first man on the moon?", "Who first walked on the moon?"],
     "Neil Armstrong was the first person on the moon."),
    (["What do bees make?", "What does a bee make?"], "Bees make honey."),
    (["What do cows eat?", "What does a cow eat?"], "Cows eat grass."),
    (["Is the Earth flat?", "Is the earth round?", "What shape is the Earth?"],
     "The Earth is round, almost a sphere."),
    (["What is the largest country?", "Which country is the biggest?"],
     "Russia is the largest country by area."),
    (["What is the smallest country?", "Which country is the smallest?"],
     "Vatican City is the smallest country."),
    (["What is the speed of light?", "How fast is light?"],
     "Light travels about 300,000 kilometres in a second."),
    (["Why is the sky blue?", "Why does the sky look blue?"],
     "Air scatters blue light more than red light, so the sky looks blue."),
    (["What is the meaning of life?", "What's the answer to everything?"],
     "Some say that it is 42."),
    (["What is pi?", "What is the value of pi?"], "Pi is about 3.14159."),
    (["What is a llama?", "Tell me what a llama is."],
     "A llama is a woolly animal from South America."),
    (["What is HTTP?", "What does HTTP stand for?"],
     "HTTP stands for Hypertext Transfer Protocol. Browsers use it to ask servers for pages."),
    (["What is JSON?", "What does JSON stand for?"],
     "JSON stands for JavaScript Object Notation. It is a plain text format for data."),
    (["What is a token?", "What are tokens?"],
     "A token is a piece of text, such as a word or a part of a word. I read and write tokens."),
    (["What is an LLM?", "What is a language model?", "What is a large language model?"],
     "A language model is a program that predicts the next piece of a text."),
    (["What is a server?", "What does a server do?"],
     "A server is a program that answers requests from other programs."),
    (["What is a GPU?", "What does GPU stand for?"],
     "A GPU is a graphics processing unit. It is good at doing many sums at once."),
    (["What is C++?", "What is cpp?"], "C++ is a programming language. Portico is written in it."),
    (["What is Python?", "Tell me what Python is."], "Python is a programming language."),
    (["What is Linux?", "Tell me what Linux is."], "Linux is a free operating system."),
]
