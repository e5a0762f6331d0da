"""Write the hierarchy tables of this folder from compact tables of facts.

The CSV files are what is shipped and used; this script only keeps them checkable. Run ``python build.py`` in this
folder to write them anew, or ``python build.py --check`` to see whether they still agree with the tables below.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

Rows = list[tuple[str, ...]]

# Continent -> UN M49 region -> "alpha-2 alpha-3 name", separated by "|"; further names of the same country follow "=".
COUNTRIES: dict[str, dict[str, str]] = {
    "Africa": {
        "Northern Africa": "DZ DZA Algeria|EG EGY Egypt|EH ESH Western Sahara|LY LBY Libya|MA MAR Morocco|SD SDN Sudan|"
        "TN TUN Tunisia",
        "Eastern Africa": "BI BDI Burundi|DJ DJI Djibouti|ER ERI Eritrea|ET ETH Ethiopia|KE KEN Kenya|KM COM Comoros|"
        "IO IOT British Indian Ocean Territory|MG MDG Madagascar|MU MUS Mauritius|MW MWI Malawi|MZ MOZ Mozambique|"
        "RE REU Réunion=Reunion|RW RWA Rwanda|SC SYC Seychelles|SO SOM Somalia|SS SSD South Sudan|"
        "TF ATF French Southern Territories|TZ TZA Tanzania=United Republic of Tanzania|UG UGA Uganda|YT MYT Mayotte|"
        "ZM ZMB Zambia|ZW ZWE Zimbabwe",
        "Middle Africa": "AO AGO Angola|CD COD Democratic Republic of the Congo|CF CAF Central African Republic|"
        "CG COG Congo=Republic of the Congo|CM CMR Cameroon|GA GAB Gabon|GQ GNQ Equatorial Guinea|"
        "ST STP Sao Tome and Principe|TD TCD Chad",
        "Southern Africa": "BW BWA Botswana|LS LSO Lesotho|NA NAM Namibia|SZ SWZ Eswatini=Swaziland|"
        "ZA ZAF South Africa",
        "Western Africa": "BF BFA Burkina Faso|BJ BEN Benin|CI CIV Côte d'Ivoire=Cote d'Ivoire=Ivory Coast|"
        "CV CPV Cabo Verde=Cape Verde|GH GHA Ghana|GM GMB Gambia|GN GIN Guinea|GW GNB Guinea-Bissau|LR LBR Liberia|"
        "ML MLI Mali|MR MRT Mauritania|NE NER Niger|NG NGA Nigeria|SH SHN Saint Helena|SL SLE Sierra Leone|"
        "SN SEN Senegal|TG TGO Togo",
    },
    "Americas": {
        "Caribbean": "AG ATG Antigua and Barbuda|AI AIA Anguilla|AW ABW Aruba|BB BRB Barbados|BL BLM Saint Barthélemy|"
        "BQ BES Bonaire, Sint Eustatius and Saba|BS BHS Bahamas|CU CUB Cuba|CW CUW Curaçao=Curacao|DM DMA Dominica|"
        "DO DOM Dominican Republic|GD GRD Grenada|GP GLP Guadeloupe|HT HTI Haiti|JM JAM Jamaica|"
        "KN KNA Saint Kitts and Nevis|KY CYM Cayman Islands|LC LCA Saint Lucia|MF MAF Saint Martin|"
        "MQ MTQ Martinique|MS MSR Montserrat|PR PRI Puerto Rico|SX SXM Sint Maarten|TC TCA Turks and Caicos Islands|"
        "TT TTO Trinidad and Tobago|VC VCT Saint Vincent and the Grenadines|VG VGB British Virgin Islands|"
        "VI VIR United States Virgin Islands",
        "Central America": "BZ BLZ Belize|CR CRI Costa Rica|GT GTM Guatemala|HN HND Honduras|MX MEX Mexico|"
        "NI NIC Nicaragua|PA PAN Panama|SV SLV El Salvador",
        "Northern America": "BM BMU Bermuda|CA CAN Canada|GL GRL Greenland|PM SPM Saint Pierre and Miquelon|"
        "US USA United States=United States of America",
        "South America": "AR ARG Argentina|BO BOL Bolivia|BR BRA Brazil|BV BVT Bouvet Island|CL CHL Chile|"
        "CO COL Colombia|EC ECU Ecuador|FK FLK Falkland Islands|GF GUF French Guiana|"
        "GS SGS South Georgia and the South Sandwich Islands|GY GUY Guyana|PE PER Peru|PY PRY Paraguay|"
        "SR SUR Suriname|UY URY Uruguay|VE VEN Venezuela",
    },
    "Asia": {
        "Central Asia": "KG KGZ Kyrgyzstan|KZ KAZ Kazakhstan|TJ TJK Tajikistan|TM TKM Turkmenistan|UZ UZB Uzbekistan",
        "Eastern Asia": "CN CHN China|HK HKG Hong Kong|JP JPN Japan|KP PRK North Korea|"
        "KR KOR South Korea=Republic of Korea|MN MNG Mongolia|MO MAC Macao=Macau|TW TWN Taiwan",
        "South-eastern Asia": "BN BRN Brunei=Brunei Darussalam|ID IDN Indonesia|KH KHM Cambodia|"
        "LA LAO Laos=Lao People's Democratic Republic|MM MMR Myanmar|MY MYS Malaysia|PH PHL Philippines|"
        "SG SGP Singapore|TH THA Thailand|TL TLS Timor-Leste|VN VNM Vietnam=Viet Nam",
        "Southern Asia": "AF AFG Afghanistan|BD BGD Bangladesh|BT BTN Bhutan|IN IND India|IR IRN Iran|"
        "LK LKA Sri Lanka|MV MDV Maldives|NP NPL Nepal|PK PAK Pakistan",
        "Western Asia": "AE ARE United Arab Emirates|AM ARM Armenia|AZ AZE Azerbaijan|BH BHR Bahrain|CY CYP Cyprus|"
        "GE GEO Georgia|IL ISR Israel|IQ IRQ Iraq|JO JOR Jordan|KW KWT Kuwait|LB LBN Lebanon|OM OMN Oman|"
        "PS PSE Palestine=State of Palestine|QA QAT Qatar|SA SAU Saudi Arabia|SY SYR Syria=Syrian Arab Republic|"
        "TR TUR Türkiye=Turkey|YE YEM Yemen",
    },
    "Europe": {
        "Eastern Europe": "BG BGR Bulgaria|BY BLR Belarus|CZ CZE Czechia=Czech Republic|HU HUN Hungary|"
        "MD MDA Moldova=Republic of Moldova|PL POL Poland|RO ROU Romania|RU RUS Russia=Russian Federation|"
        "SK SVK Slovakia|UA UKR Ukraine",
        "Northern Europe": "AX ALA Åland Islands|DK DNK Denmark|EE EST Estonia|FI FIN Finland|FO FRO Faroe Islands|"
        "GB GBR United Kingdom|GG GGY Guernsey|IE IRL Ireland|IM IMN Isle of Man|IS ISL Iceland|JE JEY Jersey|"
        "LT LTU Lithuania|LV LVA Latvia|NO NOR Norway|SE SWE Sweden|SJ SJM Svalbard and Jan Mayen",
        "Southern Europe": "AD AND Andorra|AL ALB Albania|BA BIH Bosnia and Herzegovina|ES ESP Spain|GI GIB Gibraltar|"
        "GR GRC Greece|HR HRV Croatia|IT ITA Italy|ME MNE Montenegro|MK MKD North Macedonia|MT MLT Malta|"
        "PT PRT Portugal|RS SRB Serbia|SI SVN Slovenia|SM SMR San Marino|VA VAT Holy See=Vatican City|XK XKX Kosovo",
        "Western Europe": "AT AUT Austria|BE BEL Belgium|CH CHE Switzerland|DE DEU Germany|FR FRA France|"
        "LI LIE Liechtenstein|LU LUX Luxembourg|MC MCO Monaco|NL NLD Netherlands",
    },
    "Oceania": {
        "Australia and New Zealand": "AU AUS Australia|CC CCK Cocos (Keeling) Islands|CX CXR Christmas Island|"
        "HM HMD Heard Island and McDonald Islands|NF NFK Norfolk Island|NZ NZL New Zealand",
        "Melanesia": "FJ FJI Fiji|NC NCL New Caledonia|PG PNG Papua New Guinea|SB SLB Solomon Islands|VU VUT Vanuatu",
        "Micronesia": "FM FSM Federated States of Micronesia|GU GUM Guam|KI KIR Kiribati|MH MHL Marshall Islands|"
        "MP MNP Northern Mariana Islands|NR NRU Nauru|PW PLW Palau|UM UMI United States Minor Outlying Islands",
        "Polynesia": "AS ASM American Samoa|CK COK Cook Islands|NU NIU Niue|PF PYF French Polynesia|PN PCN Pitcairn|"
        "TK TKL Tokelau|TO TON Tonga|TV TUV Tuvalu|WF WLF Wallis and Futuna|WS WSM Samoa",
    },
}

# Census region -> division -> "postal code name".
STATES: dict[str, dict[str, str]] = {
    "Northeast": {
        "New England": "CT Connecticut|MA Massachusetts|ME Maine|NH New Hampshire|RI Rhode Island|VT Vermont",
        "Middle Atlantic": "NJ New Jersey|NY New York|PA Pennsylvania",
    },
    "Midwest": {
        "East North Central": "IL Illinois|IN Indiana|MI Michigan|OH Ohio|WI Wisconsin",
        "West North Central": "IA Iowa|KS Kansas|MN Minnesota|MO Missouri|ND North Dakota|NE Nebraska|SD South Dakota",
    },
    "South": {
        "South Atlantic": "DC District of Columbia|DE Delaware|FL Florida|GA Georgia|MD Maryland|NC North Carolina|"
        "SC South Carolina|VA Virginia|WV West Virginia",
        "East South Central": "AL Alabama|KY Kentucky|MS Mississippi|TN Tennessee",
        "West South Central": "AR Arkansas|LA Louisiana|OK Oklahoma|TX Texas",
    },
    "West": {
        "Mountain": "AZ Arizona|CO Colorado|ID Idaho|MT Montana|NM New Mexico|NV Nevada|UT Utah|WY Wyoming",
        "Pacific": "AK Alaska|CA California|HI Hawaii|OR Oregon|WA Washington",
    },
    "Island areas": {
        "Caribbean territories": "PR Puerto Rico|VI U.S. Virgin Islands",
        "Pacific territories": "AS American Samoa|GU Guam|MP Northern Mariana Islands",
        "Freely associated states": "FM Federated States of Micronesia|MH Marshall Islands|PW Palau",
    },
    "Military": {"Armed Forces": "AA Armed Forces Americas|AE Armed Forces Europe|AP Armed Forces Pacific"},
}

# State -> the allocated three-digit ZIP prefixes; a prefix that serves several goes to the one with most of its people.
ZIP3 = """
NY 005 100-149; PR 006-007 009; VI 008; MA 010-027 055; RI 028-029; NH 030-038; ME 039-049; VT 050-054 056-059;
CT 060-069; NJ 070-089; AE 090-099; PA 150-196; DE 197-199; DC 200 202-205 569; VA 201 220-246; MD 206-212 214-219;
WV 247-268; NC 270-289; SC 290-299; GA 300-319 398-399; FL 320-339 341-342 344 346-347 349; AA 340;
AL 350-352 354-369; TN 370-385; MS 386-397; KY 400-418 420-427; OH 430-459; IN 460-479; MI 480-499;
IA 500-516 520-528; WI 530-532 534-535 537-549; MN 550-551 553-567; SD 570-577; ND 580-588; MT 590-599;
IL 600-620 622-629; MO 630-631 633-641 644-658; KS 660-662 664-679; NE 680-681 683-693; LA 700-701 703-708 710-714;
AR 716-729; OK 730-731 734-741 743-749; TX 733 750-770 772-799 885; CO 800-816; WY 820-831; ID 832-838; UT 840-847;
AZ 850-853 855-857 859-860 863-865; NM 870-871 873-875 877-884; NV 889-891 893-895 897-898;
CA 900-908 910-928 930-961; AP 962-966; HI 967-968; GU 969; OR 970-979; WA 980-986 988-994; AK 995-999
"""

# Further spellings of countries, and parts and predecessors of some, as data of censuses have them.
FURTHER_COUNTRIES: dict[str, str] = {
    "England": "GB",
    "Northern Ireland": "GB",
    "Scotland": "GB",
    "Wales": "GB",
    "Great Britain": "GB",
    "UK": "GB",
    "USA": "US",
    "Holland": "NL",
    "Holand-Netherlands": "NL",
    "The Netherlands": "NL",
    "Columbia": "CO",
    "Trinidad": "TT",
    "Trinadad&Tobago": "TT",
    "Yugoslavia": "RS",
    "Czechoslovakia": "CZ",
    "USSR": "RU",
    "Hong": "HK",
    "Korea": "KR",
    "Burma": "MM",
    "Macedonia": "MK",
    "Bosnia-Herzegovina": "BA",
    "Vatican": "VA",
}

EDUCATION: dict[str, dict[str, str]] = {
    "Low": {
        "ISCED 0": "No formal education|No schooling|Preschool|Nursery school|Kindergarten|Some primary school|1st-4th|"
        "Less than 1st grade|1st 2nd 3rd or 4th grade|Grade 1|Grade 2|Grade 3|Grade 4|Grade 5",
        "ISCED 1": "Primary school|Elementary school|Primary education|5th-6th|7th-8th|5th or 6th grade|"
        "7th and 8th grade|Grade 6|Grade 7|Grade 8",
        "ISCED 2": "Lower secondary education|Lower secondary school|Middle school|Junior high school|Some high school|"
        "9th|10th|11th|12th|9th grade|10th grade|11th grade|12th grade no diploma|Grade 9|Grade 10|Grade 11|Grade 12|"
        "Grade 12 (no diploma)",
    },
    "Medium": {
        "ISCED 3": "Upper secondary education|Upper secondary school|High school diploma|GED|Vocational school|"
        "Apprenticeship|Some college|High school|High school graduate|HS-grad|Some college but no degree|"
        "College dropout (<1 year)|College dropout (>1 year)",
        "ISCED 4": "Post-secondary certificate|Vocational certificate|Trade certificate|Post-secondary non-tertiary",
    },
    "High": {
        "ISCED 5": "Associate's degree|Associate degree|Foundation degree|Higher vocational diploma|Assoc-acdm|"
        "Assoc-voc|Associates degree-academic program|Associates degree-occup /vocational",
        "ISCED 6": "Bachelor's degree|Undergraduate degree|Bachelor of Arts|Bachelor of Science|Bachelor|Bachelors|"
        "Bachelors degree(BA AB BS)",
        "ISCED 7": "Master's degree|Professional degree|Master of Business Administration|Postgraduate diploma|Master|"
        "Masters|Prof-school|Masters degree(MA MS MEng MEd MSW MBA)|Prof school degree (MD DDS DVM LLB JD)",
        "ISCED 8": "Doctorate|Doctoral degree|PhD|Doctorate degree|Doctorate degree(PhD EdD)",
    },
}

MARITAL: dict[str, str] = {
    "No marriage yet": "Never married|Single|Unmarried",
    "In a marriage or partnership": "Married|Remarried|Married-civ-spouse|Married-AF-spouse|"
    "Married-civilian spouse present|Married-A F spouse present|Civil partnership|Registered partnership|"
    "Domestic partnership|Domestic partner|Partnered|Cohabiting|Living together",
    "Marriage ended, or apart": "Divorced|Separated|Legally separated|Widowed|Widow|Widower|Annulled|"
    "Married-spouse-absent",
}

WORK: dict[str, str] = {
    "Private employer": "Private|Private sector|Private company|Private for-profit|Private not-for-profit|"
    "Nonprofit|Non-profit",
    "Public employer": "Government|Public|Public sector|Federal-gov|State-gov|Local-gov|Federal government|"
    "State government|Local government|Civil service|Military",
    "Own business": "Self-employed|Self-emp-inc|Self-emp-not-inc|Self-employed-incorporated|"
    "Self-employed-not incorporated|Freelance|Business owner",
    "No pay from work": "Without-pay|Unpaid|Family worker|Never-worked|Unemployed|Retired|Student|Homemaker|"
    "Not in labor force|Volunteer",
}

# ICD-10 chapter -> its blocks (three-character ranges); the chapter's own range stands first.
ICD10 = """
I Certain infectious and parasitic diseases: A00-B99 | A00-A09 A15-A19 A20-A28 A30-A49 A50-A64 A65-A69 A70-A74 A75-A79
 A80-A89 A90-A99 B00-B09 B15-B19 B20-B24 B25-B34 B35-B49 B50-B64 B65-B83 B85-B89 B90-B94 B95-B98 B99-B99
II Neoplasms: C00-D48 | C00-C14 C15-C26 C30-C39 C40-C41 C43-C44 C45-C49 C50-C50 C51-C58 C60-C63 C64-C68 C69-C72 C73-C75
 C76-C80 C81-C96 C97-C97 D00-D09 D10-D36 D37-D48
III Diseases of the blood and certain disorders involving the immune mechanism: D50-D89 | D50-D53 D55-D59 D60-D64
 D65-D69 D70-D77 D80-D89
IV Endocrine, nutritional and metabolic diseases: E00-E90 | E00-E07 E10-E14 E15-E16 E20-E35 E40-E46 E50-E64 E65-E68
 E70-E90
V Mental and behavioural disorders: F00-F99 | F00-F09 F10-F19 F20-F29 F30-F39 F40-F48 F50-F59 F60-F69 F70-F79 F80-F89
 F90-F98 F99-F99
VI Diseases of the nervous system: G00-G99 | G00-G09 G10-G14 G20-G26 G30-G32 G35-G37 G40-G47 G50-G59 G60-G64 G70-G73
 G80-G83 G90-G99
VII Diseases of the eye and adnexa: H00-H59 | H00-H06 H10-H13 H15-H22 H25-H28 H30-H36 H40-H42 H43-H45 H46-H48 H49-H52
 H53-H54 H55-H59
VIII Diseases of the ear and mastoid process: H60-H95 | H60-H62 H65-H75 H80-H83 H90-H95
IX Diseases of the circulatory system: I00-I99 | I00-I02 I05-I09 I10-I15 I20-I25 I26-I28 I30-I52 I60-I69 I70-I79
 I80-I89 I95-I99
X Diseases of the respiratory system: J00-J99 | J00-J06 J09-J18 J20-J22 J30-J39 J40-J47 J60-J70 J80-J84 J85-J86 J90-J94
 J95-J99
XI Diseases of the digestive system: K00-K93 | K00-K14 K20-K31 K35-K38 K40-K46 K50-K52 K55-K64 K65-K67 K70-K77 K80-K87
 K90-K93
XII Diseases of the skin and subcutaneous tissue: L00-L99 | L00-L08 L10-L14 L20-L30 L40-L45 L50-L54 L55-L59 L60-L75
 L80-L99
XIII Diseases of the musculoskeletal system and connective tissue: M00-M99 | M00-M03 M05-M14 M15-M19 M20-M25 M30-M36
 M40-M43 M45-M49 M50-M54 M60-M63 M65-M68 M70-M79 M80-M85 M86-M90 M91-M94 M95-M99
XIV Diseases of the genitourinary system: N00-N99 | N00-N08 N10-N16 N17-N19 N20-N23 N25-N29 N30-N39 N40-N51 N60-N64
 N70-N77 N80-N98 N99-N99
XV Pregnancy, childbirth and the puerperium: O00-O99 | O00-O08 O10-O16 O20-O29 O30-O48 O60-O75 O80-O84 O85-O92 O94-O99
XVI Certain conditions originating in the perinatal period: P00-P96 | P00-P04 P05-P08 P10-P15 P20-P29 P35-P39 P50-P61
 P70-P74 P75-P78 P80-P83 P90-P96
XVII Congenital malformations and chromosomal abnormalities: Q00-Q99 | Q00-Q07 Q10-Q18 Q20-Q28 Q30-Q34 Q35-Q37 Q38-Q45
 Q50-Q56 Q60-Q64 Q65-Q79 Q80-Q89 Q90-Q99
XVIII Symptoms, signs and abnormal findings: R00-R99 | R00-R09 R10-R19 R20-R23 R25-R29 R30-R39 R40-R46 R47-R49 R50-R69
 R70-R79 R80-R82 R83-R89 R90-R94 R95-R99
XIX Injury, poisoning and other consequences of external causes: S00-T98 | S00-S09 S10-S19 S20-S29 S30-S39 S40-S49
 S50-S59 S60-S69 S70-S79 S80-S89 S90-S99 T00-T07 T08-T14 T15-T19 T20-T32 T33-T35 T36-T50 T51-T65 T66-T78 T79-T79 T80-T88
 T90-T98
XX External causes of morbidity and mortality: V01-Y98 | V01-V09 V10-V19 V20-V29 V30-V39 V40-V49 V50-V59 V60-V69 V70-V79
 V80-V89 V90-V94 V95-V97 V98-V99 W00-W19 W20-W49 W50-W64 W65-W74 W75-W84 W85-W99 X00-X09 X10-X19 X20-X29 X30-X39 X40-X49
 X50-X57 X58-X59 X60-X84 X85-Y09 Y10-Y34 Y35-Y36 Y40-Y59 Y60-Y69 Y70-Y82 Y83-Y84 Y85-Y89 Y90-Y98
XXI Factors influencing health status and contact with health services: Z00-Z99 | Z00-Z13 Z20-Z29 Z30-Z39 Z40-Z54
 Z55-Z65 Z70-Z76 Z80-Z99
XXII Codes for special purposes: U00-U99 | U00-U49 U82-U85
"""

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
QUARTERS = ["January February March", "April May June", "July August September", "October November December"]
MONTHS = [month for quarter in QUARTERS for month in quarter.split()]


def countries() -> dict[str, Rows]:
    """Return the three country tables: by name (with further names), by alpha-2 and by alpha-3 code."""
    names: Rows = []
    iso2: Rows = []
    iso3: Rows = []
    for continent, regions in COUNTRIES.items():
        for region, members in regions.items():
            for member in members.split("|"):
                two, three, spelled = member.split(" ", 2)
                iso2.append((two, region, continent, "*"))
                iso3.append((three, region, continent, "*"))
                further = [name for name, code in FURTHER_COUNTRIES.items() if code == two]
                names.extend((name, region, continent, "*") for name in (*spelled.split("="), *further))
    return {"countries": sorted(names), "countries_iso2": sorted(iso2), "countries_iso3": sorted(iso3)}


def states() -> dict[str, Rows]:
    """Return the tables of US states (by postal code and by name) and of three-digit ZIP prefixes."""
    codes: Rows = []
    names: Rows = []
    above: dict[str, tuple[str, str]] = {}
    for region, divisions in STATES.items():
        for division, members in divisions.items():
            for member in members.split("|"):
                code, name = member.split(" ", 1)
                above[code] = (division, region)
                codes.append((code, division, region, "*"))
                names.append((name, division, region, "*"))
    zips: Rows = []
    for entry in ZIP3.replace("\n", " ").split(";"):
        state, *spans = entry.split()
        for span in spans:
            low, _, high = span.partition("-")
            zips.extend((f"{p:03d}", state, *above[state], "*") for p in range(int(low), int(high or low) + 1))
    return {"us_states": sorted(codes), "us_state_names": sorted(names), "us_zip3": sorted(zips)}


def ages(oldest: int = 120, widths: tuple[int, ...] = (5, 10, 20, 40)) -> Rows:
    """Return single years of age with half-open bands of the given widths, each a multiple of the one before."""
    bands = [[f"[{age // w * w}, {age // w * w + w})" for w in widths] for age in range(oldest + 1)]
    return [(str(age), *labels, "*") for age, labels in enumerate(bands)]


def icd10() -> Rows:
    """Return every letter-and-two-digits category of an ICD-10 chapter with its block and its chapter."""
    every = [f"{letter}{number:02d}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for number in range(100)]
    rows: Rows = []
    for line in ICD10.replace("\n ", " ").strip().split("\n"):
        head, _, blocks = line.partition(" | ")
        title, _, span = head.partition(": ")
        found = {code: block for block in blocks.split() for code in every if block[:3] <= code <= block[4:]}
        inside = [code for code in every if span[:3] <= code <= span[4:]]
        rows.extend((code, found.get(code, span), f"{title} ({span})", "*") for code in inside)
    return sorted(rows)


def tables() -> dict[str, Rows]:
    """Return every table of this folder by its name."""
    halves = [(f"Q{m // 3 + 1}", f"H{m // 6 + 1}", "*") for m in range(12)]
    schooling: Rows = []
    for band, levels in EDUCATION.items():
        for level, labels in levels.items():
            schooling.extend((label, level, band, "*") for label in labels.split("|"))
    return {
        **countries(),
        **states(),
        "age_bands": ages(),
        "education_isced": schooling,
        "icd10_categories": icd10(),
        "marital_status": [(leaf, group, "*") for group, leaves in MARITAL.items() for leaf in leaves.split("|")],
        "work_class": [(leaf, group, "*") for group, leaves in WORK.items() for leaf in leaves.split("|")],
        "blood_types": [(group + rhesus, group, "*") for group in ("0", "A", "AB", "B", "O") for rhesus in "+-"],
        "weekdays": [(day, "weekend" if day[0] == "S" else "weekday", "*") for day in DAYS],
        "months": [(name, *up) for name, up in zip(MONTHS, halves, strict=True)],
        "month_numbers": [(str(m + 1), *up) for m, up in enumerate(halves)],
    }


def render(rows: Rows) -> str:
    """Return the rows in the exchange format: semicolons, no header, quotes only where they are needed."""
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
    return text.getvalue()


def main(arguments: list[str]) -> int:
    """Write the tables, or with ``--check`` compare them; return 1 if a table differs."""
    folder = Path(__file__).parent
    stale = 0
    for name, rows in tables().items():
        path = folder / f"{name}.csv"
        if "--check" not in arguments:
            path.write_bytes(render(rows).encode())
        elif not path.exists() or path.read_bytes() != render(rows).encode():
            print(f"differs: {path.name}")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
