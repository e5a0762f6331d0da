"""What names a person, recognized by the name of a column (in several languages) and by the look of its values."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, conjunction, number, text

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS = {
    # English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, the Nordic languages; without accents.
    "identifier": """
        name names surname firstname lastname forename fullname username login email mail phone telephone tel mobile
        cell fax ssn nino passport iban account card creditcard street address url website ip mac mrn insurance licence
        license plate signature photo vin imei
        vorname nachname familienname geburtsname kundenname patientenname strasse anschrift adresse telefon
        telefonnummer handy ausweis reisepass konto kontonummer steuernummer versicherungsnummer kennzeichen
        nom prenom courriel telephoneportable rue passeport immatriculation nir
        nombre apellido apellidos correo telefono movil direccion calle pasaporte dni nie curp matricula
        nome sobrenome endereco telemovel cpf morada cognome indirizzo cellulare targa codicefiscale fiscale
        naam voornaam achternaam adres straat bsn telefoonnummer paspoort imie nazwisko adresu ulica pesel
        namn fornamn efternamn gatuadress personnummer fodselsnummer navn fornavn etternavn efternavn cpr hetu nimi
        etunimi sukunimi puhelin osoite""",
    "key": """
        id ids uuid guid key no nr number code num identifier nummer numero numer schlussel schluessel kennung cle
        clave chave chiave sleutel klucz tunnus""",
    "quasi": """
        age birth birthdate birthday dob born yob sex gender zip zipcode postcode postal plz city town county state
        region country nationality citizenship race ethnicity marital education occupation job profession workclass
        admission discharge admitted discharged date household children height weight language
        alter geburt geburtsdatum geburtstag geburtsjahr geschlecht postleitzahl ort wohnort stadt land bundesland
        staatsangehorigkeit staatsangehoerigkeit nationalitat nationalitaet familienstand bildung beruf aufnahme
        entlassung datum grosse groesse gewicht
        naissance sexe genre codepostal ville pays nationalite profession metier situation admissiondate
        edad nacimiento sexo genero ciudad provincia pais nacionalidad profesion ingreso fecha
        idade nascimento cidade estado nacionalidade profissao eta nascita sesso citta cap paese nazionalita
        professione leeftijd geboorte geboortedatum geslacht woonplaats beroep wiek plec urodzenia miasto kod zawod
        alder kon fodelsedatum postnummer kommune yrke ika sukupuoli""",
    "core": """
        age birth birthdate birthday dob born yob sex gender zip zipcode postcode postal plz city town county state
        region country
        alter geburt geburtsdatum geburtstag geburtsjahr geschlecht postleitzahl ort wohnort stadt land bundesland
        naissance sexe genre codepostal ville pays edad nacimiento sexo genero ciudad provincia pais
        idade nascimento cidade estado eta nascita sesso citta cap paese
        leeftijd geboorte geboortedatum geslacht woonplaats wiek plec urodzenia miasto kod
        alder kon fodelsedatum postnummer kommune ika sukupuoli""",
    "person": """
        patient patients person persons people customer client member subject user employee student pupil insured
        citizen voter resident participant individual beneficiary respondent
        kunde kundin versicherte versicherter mitarbeiter teilnehmer schueler buerger
        patiente client assure salarie paciente cliente persona empleado pessoa paziente
        klant medewerker pacjent klient osoba kund potilas asiakas henkilo""",
    "sensitive": """
        diagnosis diagnoses disease illness condition icd drug drugs medication treatment therapy result salary income
        wage pay cost costs charge debt credit religion belief orientation party union crime conviction hiv disability
        diagnose krankheit befund medikament behandlung therapie gehalt einkommen lohn kosten schulden konfession
        partei behinderung maladie traitement medicament salaire revenu croyance handicap
        diagnostico enfermedad tratamiento medicamento salario ingresos renta religione malattia trattamento stipendio
        reddito doenca rendimento ziekte behandeling inkomen salaris choroba leczenie dochod sjukdom inkomst lon
        sairaus tulot""",
}
IDENTIFIER, KEY, QUASI, CORE, PERSON, SENSITIVE = (frozenset(words.split()) for words in _WORDS.values())
"""Words of columns that name a person, of keys, of quasi-identifiers, of those that are known of everybody (birth, sex
and place), of keys of persons, and of sensitive columns."""

_GIVEN = """
    james john robert michael william david richard joseph thomas charles christopher daniel matthew anthony mark paul
    steven andrew joshua kevin brian george edward ronald timothy jason jeffrey ryan jacob gary nicholas eric jonathan
    mary patricia jennifer linda elizabeth barbara susan jessica sarah karen lisa nancy betty margaret sandra ashley
    kimberly emily donna michelle carol amanda melissa deborah stephanie rebecca sharon laura cynthia kathleen amy
    anna maria emma sophie julia lena laura hans peter klaus juergen wolfgang stefan andreas markus thomas ursula monika
    petra sabine jean pierre michel philippe nicolas marie nathalie isabelle sylvie jose antonio juan manuel francisco
    carmen josefa luis carlos javier miguel joao paulo ana francesca giuseppe giovanni marco luca giulia chiara jan piet
    willem kees johanna krzysztof andrzej piotr katarzyna agnieszka erik lars anders karin ingrid mohamed muhammad
    ahmed ali fatima aisha ivan sergei dmitri olga elena wei ming hiroshi yuki raj priya amit"""

_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "œ": "oe"})
_PATTERNS: dict[str, tuple[str, ...]] = {
    "mail address": (r"[^@\s]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",),
    "web address": (r"(https?|ftp)://\S+", r"www\.[^\s.]+\.\S+"),
    "network address": (
        r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])",
        r"[0-9A-Fa-f]{1,4}(:[0-9A-Fa-f]{0,4}){2,7}",
        r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}",
    ),
    "IBAN": (r"[A-Z]{2}[0-9]{2}([ ]?[A-Z0-9]){11,30}",),
    "credit card": (r"[2-6][0-9]{12,18}", r"[2-6][0-9]{3}([ -][0-9]{4}){3}", r"3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5}"),
    "national id": (
        r"[0-9]{3}-[0-9]{2}-[0-9]{4}",  # United States
        r"[A-CEGHJ-PR-TW-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]",  # United Kingdom
        r"[0-9]{8}-?[A-HJ-NP-TV-Z]",  # Spain
        r"[XYZ]-?[0-9]{7}-?[A-Z]",
        r"[A-Z]{6}[0-9]{2}[A-EHLMPR-T][0-9]{2}[A-Z][0-9]{3}[A-Z]",  # Italy
        r"[12] ?[0-9]{2} ?(0[1-9]|1[0-2]|[2-9][0-9]) ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",  # France
        r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}",  # Brazil
        r"([0-9]{2})?[0-9]{2}(0[1-9]|1[0-2])[0-3][0-9][-+][0-9]{4}",  # Sweden
        r"[0-3][0-9](0[1-9]|1[0-2])[0-9]{2}[-+A][0-9]{3}[0-9A-FHJ-NPR-Y]",  # Finland
        r"[0-3][0-9](0[1-9]|1[0-2])[0-9]{2}-[0-9]{4}",  # Denmark
        r"[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[0-9A-Z][0-9]",  # Mexico
        r"[A-Z]{5}[0-9]{4}[A-Z]",  # India
        r"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}",  # Switzerland
    ),
    "UUID": (r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",),
    "phone number": (
        r"(\+|00)[0-9]{1,3}[ ./-]?(\(0?\)|\([0-9]{1,5}\))?([ ./-]?[0-9]){6,12}",
        r"\(0?[0-9]{2,5}\)[ ./-]?[0-9]([ ./-]?[0-9]){4,9}",
        r"0[0-9]{1,4}[ ./-][0-9]([ ./-]?[0-9]){4,9}",
        r"[2-9][0-9]{2}[ .-][2-9][0-9]{2}[ .-][0-9]{4}",
    ),
    "person name": (),
}
KINDS = tuple(_PATTERNS)
_DATE = r"[0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}.*|[0-9]{1,2}[-./][0-9]{1,2}[-./]([0-9]{4}|[0-9]{2})( .*)?"
_TITLES = r"(?:mr|mrs|ms|dr|prof|herr|frau|mme|sra?)\.? "
_PERSON = r"[\p{L}'.-]+,?( [\p{L}'.-]+){0,4}"
_LEAST = dict.fromkeys(KINDS, 0.8) | {"person name": 0.15}
"""From which share of the values on a column is taken for one of the kind; lists know few of the names there are."""


def words(name: str) -> set[str]:
    """Return the words of a column's name, without accents.

    Examples
    --------
    >>> sorted(words("patientBirthDate")), sorted(words("ZIP_code2")), sorted(words("Prénom"))
    (['birth', 'date', 'patient'], ['code', 'zip'], ['prenom'])
    """
    folded = name.translate(_LETTERS)
    plain = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain)
    return {word.lower() for word in re.findall(r"[^\W\d_]+", spaced)}


@cache
def _pattern(kind: str) -> str:
    return "|".join(f"(?:{one})" for one in _PATTERNS[kind])


def matches(value: exp.Expr) -> Mapping[str, exp.Expr]:
    """Return for each kind the condition that a text matches it; the whole text must match."""
    trimmed = call("trim", value)

    def fits(pattern: str, what: exp.Expr = trimmed) -> exp.Expr:
        return call("regexp_full_match", what.copy(), text(pattern))

    expressions: dict[str, exp.Expr] = {kind: fits(_pattern(kind)) for kind in KINDS if _PATTERNS[kind]}
    expressions["IBAN"] = conjunction([expressions["IBAN"], _iban(trimmed)])
    expressions["credit card"] = conjunction([expressions["credit card"], _luhn(trimmed)])
    expressions["phone number"] = conjunction([expressions["phone number"], exp.Not(this=fits(_DATE))])
    # The given name comes first, or after the comma: San Juan is not a person.
    given = "|".join(dict.fromkeys(_GIVEN.split()))
    first_name = call("regexp_matches", trimmed.copy(), text(rf"(?i)(?:^(?:{_TITLES})?|, ?)(?:{given})\b"))
    expressions["person name"] = conjunction([fits(_PERSON), first_name])
    return expressions


def recognized(shares: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the kind that the values of a column are of, and the share of values that are.

    Examples
    --------
    >>> recognized({"mail address": 0.99, "person name": 0.3}), recognized({"UUID": 0.1})
    (('mail address', 0.99), None)
    """
    fitting = [(share, kind) for kind, share in shares.items() if share >= _LEAST[kind]]
    if not fitting:
        return None
    share, kind = max(fitting, key=lambda one: (one[0], -KINDS.index(one[1])))
    return kind, share


def _without_separators(value: exp.Expr) -> exp.Expr:
    return call("regexp_replace", value.copy(), text("[ -]"), text(""), text("g"))


def _digit(digits: exp.Expr, place: int, length: int = 1) -> exp.Expr:
    piece = call("substr", digits.copy(), number(place), number(length))
    return exp.func("COALESCE", exp.TryCast(this=piece, to=exp.DataType.build("BIGINT")), number(0))


def _luhn(value: exp.Expr) -> exp.Expr:
    """Return the condition that the check digit of a card number is right."""
    width = 19
    digits = call("lpad", _without_separators(value), number(width), text("0"))
    total: exp.Expr = number(0)
    for place in range(1, width + 1):
        digit = _digit(digits, place)
        if (width - place) % 2:
            # Twice the digit, the digits of that added up: 5 is 10 is 1.
            doubled = exp.Mul(this=digit, expression=number(2))
            digit = exp.paren(exp.Sub(this=doubled, expression=_nine(digits, place)))
        total = exp.Add(this=total, expression=digit)
    return exp.EQ(this=exp.Mod(this=exp.paren(total), expression=number(10)), expression=number(0))


def _nine(digits: exp.Expr, place: int) -> exp.Expr:
    large = exp.GTE(this=_digit(digits, place), expression=number(5))
    return exp.case().when(large, number(9)).else_(number(0))


def _iban(value: exp.Expr) -> exp.Expr:
    """Return the condition that the number, letters read as 10 to 35, leaves 1 when divided by 97."""
    joined = _without_separators(value)
    moved: exp.Expr = exp.DPipe(
        this=call("substr", joined.copy(), number(5)), expression=call("substr", joined, number(1), number(4))
    )
    for place, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        moved = call("replace", moved, text(letter), text(str(10 + place)))
    piece, pieces = 9, 8
    digits = call("lpad", moved, number(piece * pieces), text("0"))
    rest: exp.Expr = cast(number(0), "BIGINT")
    for place in range(pieces):
        shifted = exp.Mul(this=exp.paren(rest), expression=number(10**piece))
        rest = exp.Mod(
            this=exp.paren(exp.Add(this=shifted, expression=_digit(digits, 1 + place * piece, piece))),
            expression=number(97),
        )
    return exp.EQ(this=rest, expression=number(1))


__all__ = ["CORE", "IDENTIFIER", "KEY", "KINDS", "PERSON", "QUASI", "SENSITIVE", "matches", "recognized", "words"]
