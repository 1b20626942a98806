"""Plain words for questions the model cannot answer, for system prompts and for tool arguments."""

NOUNS = (
    "apple arm army art aunt autumn back bag ball bank basket bath battery beach bean bed bell "
    "bicycle bill "
    "blanket board boat body bone book boot bottle box boy brain branch bridge brother brush "
    "bucket budget "
    "building bus business butter button cable cake camera camp candle car card castle cellar "
    "chain chair chance "
    "cheese church circle city class cloth cloud coat code coffee compiler concert contract cook "
    "corner cotton "
    "country cousin credit crowd cup curtain customer daughter database deal death debt desk "
    "detail device dinner "
    "doctor door dream dress driver dust ear economy edge education electron email energy engine "
    "engineer error "
    "event exam example experience eye face factory family farm father fear feather film finger "
    "fire fish flag "
    "floor flower folder food football forest fork friend fruit function future galaxy game garden "
    "gate gift girl "
    "glass glove gold government grandmother grape guitar hair hammer hand harbour hat head health "
    "heart history "
    "holiday home hospital hotel house idea island jacket job journey judge juice kettle key "
    "kitchen knee knife "
    "ladder lake lamp language laptop law lawyer leaf lesson letter library lip list lock love "
    "lunch machine "
    "manager map market marriage meal meat medicine memory message metal mind mirror moment money "
    "monkey month "
    "mother motor mouth movie museum music nail name needle neighbour network newspaper nose note "
    "number nurse "
    "office oil onion opera orange oven owner page pain paint pants paper parcel parent park party "
    "passport path "
    "peace pen pencil people pepper phone photo piano picture pillow pipe plan plane plant plate "
    "pocket poem "
    "police policy pool potato power president price prince problem product professor program "
    "project proof pump "
    "queen question radio railway receipt recipe religion report restaurant rice ring river road "
    "rocket roof room "
    "root rope rose rule sail salad salt sand school science screen sea season secret sentence "
    "shelf ship shirt "
    "shoe shop shoulder sister skin sky sleep smile soap society sock soldier song soup space "
    "spoon sport spring "
    "stamp star station stomach stone storm street student sugar suit summer sweater table tail "
    "tax tea teacher "
    "team telephone theatre theory thread throat ticket tiger time tongue tooth tower town toy "
    "train tree trip "
    "truth uncle universe university vacuum valley vegetable video village violin virus voice "
    "volcano wall war "
    "watch water wave weather website wedding wheel whistle wife wind window wine winter wire "
    "woman wood word "
    "work worker world yard year").split()

VERBS = ("build clean cook draw fix grow learn make open paint play repair sell send sort start "
         "stop test "
         "train translate understand use wash write find buy change choose compare connect "
         "describe design "
         "improve install measure move plan remove store teach update").split()

ADJECTIVES = ("angry best bitter blue brave broken bright busy calm cheap clever common cruel deep "
              "different "
              "digital expensive famous favourite fine foreign free fresh funny golden green grey "
              "healthy hidden "
              "important large lazy little local lucky modern new nice perfect private public pure "
              "quick rare red "
              "round rude safe secret serious sharp simple single smooth special strange sudden "
              "tall tired useful "
              "warm wild wooden worst").split()

FIRST_NAMES = ("Anna Ben Clara David Emma Felix Grace Henry Ida Jack Kate Leo Maria Noah Olga Paul "
               "Rosa Sam Tina "
               "Victor Wendy Alice Bob Carol Dan Eva Frank Gina Hugo Ines Jonas Karl Lena Max Nina "
               "Oscar Peter "
               "Sara Tom Ursula Vera Will Yara Zoe Ali Amir Chen Diego Fatima Hana Ivan Jin Kofi "
               "Lucia Mei Omar "
               "Priya Ravi Sofia Yuki John Mary James Linda Robert Susan Michael Lisa Thomas Julia "
               "Simon Laura "
               "Martin Eric Kevin Alex Chris Marco Pablo Elena Nora Mia Finn Luca").split()

CITIES = ("Paris London Berlin Madrid Rome Vienna Oslo Tokyo Cairo Lima Munich Hamburg Cologne "
          "Milan Naples Turin "
          "Barcelona Seville Porto Lyon Nice Geneva Zurich Basel Ghent Bruges Leeds Bristol Dublin "
          "Glasgow Boston "
          "Chicago Seattle Denver Dallas Houston Miami Toronto Montreal Sydney Perth Mumbai Delhi "
          "Osaka Kyoto Seoul "
          "Shanghai Hanoi Manila Nairobi Lagos Dakar Prague Krakow Warsaw Riga Tallinn Helsinki "
          "Stockholm Bergen "
          "Athens Sofia Zagreb Istanbul Dubai Tehran Santiago Bogota Quito Havana").split() + [
              "New York", "San Francisco", "Los Angeles", "Mexico City", "Buenos Aires",
              "Cape Town", "New Delhi",
              "Rio de Janeiro", "Hong Kong", "Salt Lake City"]

_STARTS = "b br c ch d dr f fl g gr h j k kl l m n p pr qu r s sh sk st t tr v w z".split()
_MIDDLES = "a e i o u ai ea ou oo ie".split()
_ENDS = " l n r s t m nd rk st x th ck ng".split(" ")


def made_up_word(rng, syllables=None):
    """A word that exists nowhere, so that copying it cannot be learnt by heart."""
    count = syllables or rng.choice([1, 2, 2, 3])
    return "".join(rng.choice(_STARTS) + rng.choice(_MIDDLES) + (rng.choice(_ENDS) if rng.random() < 0.6 else "")
                   for _ in range(count))


def any_word(rng):
    return made_up_word(rng) if rng.random() < 0.15 else rng.choice(rng.choice([NOUNS, NOUNS, VERBS,
                                                                                ADJECTIVES]))


def any_city(rng):
    return made_up_word(rng, 2).capitalize() if rng.random() < 0.3 else rng.choice(CITIES)


def any_name(rng):
    return made_up_word(rng, 2).capitalize() if rng.random() < 0.2 else rng.choice(FIRST_NAMES)
