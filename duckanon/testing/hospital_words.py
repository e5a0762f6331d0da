"""Word lists and shares of the synthetic hospital table; all of them invented for it."""

from __future__ import annotations

GIVEN_F = (
    "Mary Emma Olivia Linda Patricia Sofia Maria Barbara Susan Ava Jennifer Elizabeth Karen Nancy Ana Grace Lisa "
    "Carmen Ruth Mei Helen Aisha Priya Rosa Chloe Hannah Fatima Yuki Ingrid Thuy Leila Irina Naomi Alice Lucia Amara "
    "Elena Dolores Joyce Beatriz Nadia Sakura Zainab Wanjiru Astrid Ioana Kalani Lakshmi Mireille Noor Oksana Paloma "
    "Saoirse Tamar Ximena Yasmin Zofia Adaeze Birgit Chinami Dilnoza Esperanza Freya Gulsen Hinemoa Ilse Jadwiga "
    "Kerstin Lindiwe Malia Nokuthula Orla Parisa Quynh Rukmini Sunniva Tuulikki Ulrike Violeta Winona Xiulan Yevgenia"
)
GIVEN_M = (
    "James Robert Michael William David Jose Daniel John Thomas Charles Juan Joseph Ethan Mark Liam George Kevin "
    "Ahmed Carlos Wei Brian Edward Arjun Luis Noah Mohammed Hiroshi Ivan Diego Frank Minh Samuel Omar Raj Pedro "
    "Walter Dmitri Kwame Lars Mateo Ali Ravi Stefan Antonio Chen Emeka Piotr Hassan Jorge Kenji Andre Bogdan Caio "
    "Dawit Eero Farid Goran Haruto Ismail Jakub Kofi Lorenzo Mihai Nikhil Oleg Pavel Quang Rustam Sione Tariq Ulf "
    "Viktor Wojciech Xavier Yosef Zoltan Anders Babak Cormac Desta Elio Faisal Giorgi Henrik"
)
FAMILY = (
    "Smith Johnson Garcia Williams Brown Nguyen Miller Davis Martinez Jones Lee Rodriguez Anderson Wilson Lopez "
    "Taylor Hernandez Moore Patel Kim Thompson White Clark Chen Lewis Walker Gonzalez Hall Young King Wright Scott "
    "Torres Hill Perez Green Adams Baker Nelson Ramirez Singh Campbell Mitchell Roberts Tran Khan Phillips Evans "
    "Turner Sanchez Parker Collins Edwards Stewart Flores Morris Murphy Rivera Cook Rogers Morgan Petersen Cooper "
    "Reed Bailey Gomez Kelly Howard Ward Cox Diaz Richardson Wood Watson Brooks Bennett Gray Reyes Hughes Price Myers "
    "Long Foster Sanders Ross Morales Powell Sullivan Russell Ortiz Jenkins Gutierrez Perry Butler Barnes Fisher Pham "
    "Wang Liu Sato Tanaka Yamamoto Park Choi Ali Hassan Hussein Abdi Okafor Mensah Diallo Mwangi Tesfaye Haile Ivanov "
    "Petrov Kowalski Novak Horvath Popescu Larsen Johansson Nilsen Virtanen Schmidt Mueller Weber Rossi Ferrari Silva "
    "Santos Costa Moreau Dubois Papadopoulos Yilmaz Demir Haddad Khoury Cohen Levi Sharma Gupta Reddy Iyer Chowdhury "
    "Perera Bui Dang Lim Santoso Wijaya Kealoha Tuiasosopo Begaye Whitehorse Jensen Lindqvist Bakker Vandenberg "
    "Oconnor Byrne Nakagawa Zhou Huang Farouk Rahimi Tadesse Ndiaye Kamau Banda Castellanos Villanueva Aguilar "
    "Mendoza Vasquez Salazar"
)

# ZIP prefix (Oregon and south-west Washington) -> number of ZIP codes, share of the patients, steepness of the ranks.
# The prefixes are allocated ones; the last two digits are made up.
ZIP_AREAS: dict[str, tuple[int, float, float]] = {
    "972": (42, 38.0, 0.55),
    "970": (46, 19.0, 0.85),
    "971": (34, 6.0, 0.95),
    "986": (40, 12.0, 0.80),
    "973": (42, 10.0, 1.00),
    "974": (36, 7.0, 1.10),
    "977": (20, 4.0, 1.20),
    "975": (18, 2.5, 1.20),
    "978": (22, 1.0, 1.30),
    "976": (10, 0.4, 1.40),
    "979": (7, 0.1, 1.40),
}

HOME = "United States"
HOME_SHARE = 0.84
COUNTRIES = (
    "Mexico|India|China|Vietnam|Philippines|Guatemala|Canada|Ukraine|Russia|South Korea|Germany|United Kingdom|Japan|"
    "El Salvador|Ethiopia|Cuba|Romania|Iran|Honduras|Somalia|Thailand|Colombia|Brazil|Peru|Cambodia|Laos|Taiwan|Iraq|"
    "Federated States of Micronesia|Nigeria|Kenya|Poland|France|Italy|Pakistan|Nepal|Marshall Islands|Eritrea|Myanmar|"
    "Indonesia|Venezuela|Australia|Ireland|Egypt|Türkiye|Syria|Afghanistan|Norway|Sweden|Samoa|Fiji|Bhutan|Ghana|"
    "New Zealand|Switzerland|Chile|Morocco|Estonia|Paraguay|Iceland|Tonga|Luxembourg"
)

# Shares by age of the person, one column per edge of STATUS_EDGES and one beyond the last.
STATUS_EDGES = (3, 6, 12, 15, 18, 25, 35, 50, 65, 80)
MARITAL: dict[str, tuple[float, ...]] = {
    "Single": (1, 1, 1, 1, 1, 0.86, 0.48, 0.22, 0.13, 0.07, 0.05),
    "Married": (0, 0, 0, 0, 0, 0.09, 0.39, 0.57, 0.60, 0.56, 0.36),
    "Domestic partnership": (0, 0, 0, 0, 0, 0.04, 0.08, 0.05, 0.03, 0.02, 0.01),
    "Divorced": (0, 0, 0, 0, 0, 0.006, 0.035, 0.12, 0.17, 0.15, 0.09),
    "Separated": (0, 0, 0, 0, 0, 0.003, 0.012, 0.03, 0.025, 0.012, 0.006),
    "Widowed": (0, 0, 0, 0, 0, 0.001, 0.003, 0.01, 0.045, 0.188, 0.484),
}
EDUCATION: dict[str, tuple[float, ...]] = {
    "No formal education": (1, 0.20, 0.01, 0.004, 0.003, 0.003, 0.003, 0.004, 0.007, 0.012, 0.02),
    "Preschool": (0, 0.80, 0.19, 0, 0, 0, 0, 0, 0, 0, 0),
    "Some primary school": (0, 0, 0.80, 0.12, 0.01, 0.005, 0.006, 0.008, 0.012, 0.02, 0.04),
    "Primary school": (0, 0, 0, 0.856, 0.06, 0.01, 0.012, 0.018, 0.025, 0.04, 0.08),
    "Middle school": (0, 0, 0, 0.02, 0.62, 0.02, 0.02, 0.025, 0.03, 0.05, 0.08),
    "Some high school": (0, 0, 0, 0, 0.307, 0.06, 0.045, 0.05, 0.055, 0.065, 0.09),
    "High school diploma": (0, 0, 0, 0, 0, 0.35, 0.21, 0.22, 0.25, 0.29, 0.32),
    "GED": (0, 0, 0, 0, 0, 0.04, 0.035, 0.03, 0.03, 0.02, 0.01),
    "Some college": (0, 0, 0, 0, 0, 0.33, 0.18, 0.17, 0.17, 0.16, 0.12),
    "Trade certificate": (0, 0, 0, 0, 0, 0.03, 0.045, 0.05, 0.055, 0.05, 0.04),
    "Associate's degree": (0, 0, 0, 0, 0, 0.06, 0.09, 0.09, 0.08, 0.06, 0.03),
    "Bachelor's degree": (0, 0, 0, 0, 0, 0.085, 0.25, 0.215, 0.18, 0.14, 0.10),
    "Master's degree": (0, 0, 0, 0, 0, 0.007, 0.08, 0.09, 0.08, 0.07, 0.05),
    "Professional degree": (0, 0, 0, 0, 0, 0, 0.016, 0.018, 0.015, 0.013, 0.012),
    "Doctorate": (0, 0, 0, 0, 0, 0, 0.008, 0.012, 0.011, 0.01, 0.008),
}

# Years of age at the knots of the age pyramid, and how many patients of each sex (F, M) they stand for.
AGE_KNOTS = (0, 1, 2, 5, 12, 16, 20, 27, 33, 40, 45, 55, 65, 73, 80, 86, 92, 100)
AGE_F = (42, 9, 6, 4, 3.5, 6, 13, 22, 23, 15, 12, 14, 20, 26, 28, 22, 10, 0.4)
AGE_M = (45, 11, 8, 5, 4.0, 5, 7, 8, 9, 10, 12, 18, 26, 30, 26, 16, 5, 0.15)

# Ward -> median days, dollars per stay, dollars per day.
WARDS: dict[str, tuple[float, float, float]] = {
    "Internal Medicine": (3.6, 3_200, 1_900),
    "Cardiology": (3.2, 9_500, 2_600),
    "Pulmonology": (4.2, 3_600, 2_100),
    "General Surgery": (3.0, 9_000, 2_400),
    "Orthopedics": (3.1, 13_000, 2_300),
    "Obstetrics": (2.2, 5_200, 1_800),
    "Pediatrics": (2.1, 2_400, 2_000),
    "Neurology": (4.4, 5_500, 2_400),
    "Oncology": (5.2, 11_000, 2_900),
    "Psychiatry": (7.5, 1_600, 1_200),
    "Geriatrics": (6.0, 2_900, 1_700),
    "Intensive Care": (5.5, 14_000, 6_500),
    "Emergency": (0.8, 1_900, 1_500),
}

# Upper edges, in days of age, of the bands below: 28 days, then 5, 15, 30, 45, 60, 75 and 85 years.
BAND_EDGES = (28, 1826, 5479, 10957, 16436, 21915, 27393, 31046)

# Group of diagnoses -> ward, factors (F, M, winter), weight in each of the nine age bands, codes from common to rare.
DIAGNOSES: dict[str, tuple[str, tuple[float, float, float], tuple[float, ...], str]] = {
    "newborn": ("Pediatrics", (1, 1, 1), (90, 0, 0, 0, 0, 0, 0, 0, 0), "Z38.0 P07.3 P59.9 Z38.1 P22.0 P70.4 P36.9"),
    "congenital": ("Pediatrics", (1, 1, 1), (4, 3, 1, 0.1, 0, 0, 0, 0, 0), "Q21.1 Q90.9 Q37.9"),
    "childhood": (
        "Pediatrics",
        (1, 1.2, 1.8),
        (3, 34, 12, 0, 0, 0, 0, 0, 0),
        "J21.0 A09.9 J05.0 B34.9 R56.0 J03.9 H66.9 N10",
    ),
    "birth": (
        "Obstetrics",
        (1, 0, 1),
        (0, 0, 0, 62, 55, 0, 0, 0, 0),
        "O80 O82 O34.2 O42.0 O70.1 O48 O13 O00.1",
    ),
    "heart": (
        "Cardiology",
        (0.8, 1.25, 1.05),
        (0, 0.2, 0.4, 1.5, 6, 18, 25, 27, 26),
        "I50.0 I48.9 I21.4 I25.1 I20.0 I21.9 I10 I71.4",
    ),
    "lung": (
        "Pulmonology",
        (0.95, 1.05, 1.7),
        (1, 8, 7, 3, 4, 9, 14, 15, 16),
        "J18.9 J44.1 J44.0 J45.9 J96.0 J20.9 U07.1 A15.0",
    ),
    "metabolic": (
        "Internal Medicine",
        (1, 1.05, 1),
        (0.5, 1, 4, 5, 6, 8, 8, 7, 7),
        "E11.9 E86 E11.5 E10.1 E87.1 E11.6 E66.9 E84.0",
    ),
    "digestive": (
        "General Surgery",
        (1, 1, 1),
        (0.5, 3, 11, 12, 14, 14, 12, 10, 9),
        "K80.2 K35.8 K57.3 K85.9 K56.6 K40.9 K29.7 K74.6",
    ),
    "bones": (
        "Orthopedics",
        (1.1, 0.95, 1),
        (0, 0.3, 2, 3, 6, 14, 18, 12, 6),
        "M17.1 M16.1 M54.5 M51.1 M48.0 M75.1 M80.9 M86.9",
    ),
    "injury": (
        "Orthopedics",
        (0.85, 1.2, 1.05),
        (0.3, 7, 14, 14, 10, 9, 9, 13, 20),
        "S72.0 S06.0 S82.8 S52.5 S42.2 S72.1 S22.4 S27.0",
    ),
    "brain": (
        "Neurology",
        (1, 1, 1),
        (0.3, 3, 4, 4, 5, 8, 10, 11, 11),
        "I63.9 G40.9 G45.9 I61.9 G20 G43.9 G35 G12.2",
    ),
    "mind": (
        "Psychiatry",
        (1, 1.05, 1),
        (0, 0, 6, 18, 14, 8, 3, 1.5, 1),
        "F10.2 F32.2 F20.0 F31.9 F33.2 F43.2 F11.2 F05.9",
    ),
    "kidney": (
        "Internal Medicine",
        (1.1, 1, 1),
        (0.5, 2, 2, 3, 5, 7, 9, 11, 13),
        "N39.0 N17.9 A41.9 N20.1 N18.5 L03.1 D50.9 B20",
    ),
    "tumour": (
        "Oncology",
        (1, 1.1, 1),
        (0.1, 1, 1.2, 1.5, 4, 10, 14, 10, 6),
        "C34.9 C18.7 C20 C25.9 C67.9 C91.0 C83.3 C81.9",
    ),
    "women": (
        "Oncology",
        (1, 0, 1),
        (0, 0, 0, 1, 5, 8, 7, 4, 2),
        "C50.9 D25.9 C54.1 N80.9 C56 C53.9",
    ),
    "men": ("Oncology", (0, 1, 1), (0, 0, 0, 0.8, 0.6, 4, 9, 7, 5), "C61 N40 C62.9"),
    "symptoms": (
        "Emergency",
        (1.05, 1, 1),
        (0.5, 4, 6, 9, 9, 9, 9, 9, 10),
        "R07.4 R55 R10.4 R06.0 R42 R50.9 R41.0 R31",
    ),
}
