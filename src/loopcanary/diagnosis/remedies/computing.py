"""Remedies for computing in the standard library: parsing, hashing, packing, sorting. Data."""

from __future__ import annotations

from loopcanary.diagnosis.remedies.kinds import COMPUTING, Remedy, Way

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        names=("json.loads", "json.dumps", "json.load", "json.dump", "simplejson.loads", "simplejson.dumps"),
        modules=("json", "simplejson"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Use a faster parser (orjson, msgspec), or smaller documents; "
        "`asyncio.to_thread` does not help, since the call holds the GIL.",
    ),
    Remedy(
        names=("orjson.loads", "orjson.dumps", "ujson.loads", "msgspec.json.decode", "msgpack.unpackb"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="The document is large: send it in parts (JSON lines), or decode it in a process pool.",
    ),
    Remedy(
        names=("re.match", "re.search", "re.fullmatch", "re.sub", "re.findall", "re.split", "re.compile"),
        modules=("re", "regex"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Make the pattern free of nested repetition and bound its input; the call holds the GIL, so "
        "only a process (`ProcessPoolExecutor`) takes it off the loop.",
    ),
    Remedy(
        names=(
            "pattern.match",
            "regex.match",
            "*.fullmatch",
            "*.finditer",
            "*.findall",
            "PATTERN.search",
            "*.match",
        ),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Make the pattern free of nested repetition and bound its input; google-re2 never "
        "backtracks.",
    ),
    Remedy(
        names=("copy.deepcopy", "copy.copy"),
        modules=("copy",),
        causes=COMPUTING,
        way=Way.PIECES,
        asyncio="Copy less at a time, or share what nobody changes: a deep copy is Python code that holds "
        "the GIL.",
    ),
    Remedy(
        names=(
            "pickle.loads",
            "pickle.dumps",
            "pickle.load",
            "pickle.dump",
            "dill.loads",
            "cloudpickle.dumps",
        ),
        modules=("pickle", "dill", "cloudpickle"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Copy or serialise less at a time; the call holds the GIL, so a thread does not help.",
    ),
    Remedy(
        names=("marshal.loads", "marshal.dumps", "ast.parse", "compile", "ast.literal_eval", "eval", "exec"),
        modules=("ast",),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Compile once and keep the result, or do it in a process pool.",
    ),
    Remedy(
        names=("hashlib.pbkdf2_hmac", "hashlib.scrypt"),
        causes=COMPUTING,
        way=Way.THREAD,
        asyncio="Run it with `await asyncio.to_thread(...)`: it releases the GIL while it works.",
    ),
    Remedy(
        names=(
            "hashlib.sha256",
            "hashlib.sha1",
            "hashlib.md5",
            "hashlib.blake2b",
            "hashlib.file_digest",
            "*.hexdigest",
        ),
        modules=("hashlib", "hmac"),
        causes=COMPUTING,
        way=Way.THREAD,
        asyncio="Hash large data with `await asyncio.to_thread(...)`: beyond 2 KiB the GIL is released.",
    ),
    Remedy(
        names=(
            "zlib.compress",
            "zlib.decompress",
            "gzip.compress",
            "gzip.decompress",
            "lzma.compress",
            "bz2.compress",
        ),
        modules=("gzip", "bz2", "lzma", "zlib"),
        causes=COMPUTING,
        way=Way.THREAD,
        asyncio="Compress with `await asyncio.to_thread(...)`: it releases the GIL while it works.",
    ),
    Remedy(
        names=("zstandard.compress", "brotli.compress", "lz4.frame.compress", "snappy.compress"),
        modules=("zstandard", "brotli", "lz4"),
        causes=COMPUTING,
        way=Way.THREAD,
        asyncio="Compress with `await asyncio.to_thread(...)`, at a lower level: most codecs release the "
        "GIL.",
    ),
    Remedy(
        names=("csv.reader", "csv.DictReader", "writer.writerows"),
        modules=("csv",),
        causes=COMPUTING,
        way=Way.PIECES,
        asyncio="Read the rows in batches with `await asyncio.sleep(0)` between them, or in a process pool.",
    ),
    Remedy(
        names=("ET.parse", "ET.fromstring", "ElementTree.parse", "minidom.parseString", "xmltodict.parse"),
        modules=("xml", "xmltodict"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Parse large documents in a process pool, or with `iterparse` in pieces.",
    ),
    Remedy(
        names=("sorted", "*.sort", "sum", "min", "max", "list", "heapq.nlargest", "itertools.permutations"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="The data is large: keep it sorted or summed as it grows (bisect, heapq), or use a process "
        "pool; the "
        "call holds the GIL.",
    ),
    Remedy(
        names=("pow", "math.factorial", "math.comb", "int", "str", "decimal.Decimal", "fractions.Fraction"),
        modules=("decimal", "_pydecimal", "fractions"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Numbers of so many digits take long: bound them, use gmpy2, or a process pool.",
    ),
    Remedy(
        names=("difflib.SequenceMatcher", "difflib.unified_diff", "*.ratio", "*.get_matching_blocks"),
        modules=("difflib",),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="difflib takes quadratic time: bound its input, use rapidfuzz, or a process pool.",
    ),
    Remedy(
        modules=("statistics",),
        causes=COMPUTING,
        way=Way.PIECES,
        asyncio="The statistics module is exact and slow: use numpy, or `statistics.fmean`.",
    ),
    Remedy(
        modules=("email", "html", "textwrap", "configparser", "tomllib", "plistlib"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="The document is large: parse it in a process pool, or in pieces with `await "
        "asyncio.sleep(0)`.",
    ),
    Remedy(
        names=("traceback.format_exc", "traceback.format_exception", "inspect.getsource", "inspect.stack"),
        modules=("traceback", "inspect", "linecache"),
        way=Way.PIECES,
        asyncio="Tracebacks and `inspect.stack()` read source files: take them seldom, or on another thread.",
    ),
    Remedy(
        names=("b64encode", "base64.b64encode", "base64.b64decode", "binascii.hexlify", "*.hex"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Encode large data in pieces, such as as it is sent; the call holds the GIL.",
    ),
    Remedy(
        names=("*.encode", "*.decode", "*.join", "*.replace", "*.split", "*.translate", "*.format"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="The text is large: work on it in pieces as it comes; the call holds the GIL.",
    ),
)
