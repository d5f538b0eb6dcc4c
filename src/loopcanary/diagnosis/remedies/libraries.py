"""Remedies for packages that compute: numbers, images, models, templates, secrets. Data."""

from __future__ import annotations

from loopcanary.diagnosis.remedies.kinds import COMPUTING, Remedy, Way
from loopcanary.model import Cause

_LOADING = COMPUTING | {Cause.DISK_IO}

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        names=("bcrypt.hashpw", "bcrypt.checkpw", "bcrypt.kdf"),
        modules=("bcrypt", "argon2", "passlib", "scrypt"),
        causes=COMPUTING,
        way=Way.THREAD,
        asyncio="Hash passwords with `await asyncio.to_thread(...)`: it is slow on purpose, and releases "
        "the GIL.",
    ),
    Remedy(
        modules=("cryptography", "Crypto", "nacl", "jwt", "jose", "rsa"),
        names=("rsa.generate_private_key", "RSA.generate", "jwt.decode", "jwt.encode", "fernet.encrypt"),
        causes=COMPUTING,
        way=Way.THREAD,
        asyncio="Run key generation and bulk encryption with `await asyncio.to_thread(...)`; keep keys "
        "loaded.",
    ),
    Remedy(
        names=("pd.read_csv", "pd.read_excel", "pd.read_parquet", "pd.read_sql", "df.to_csv", "df.to_excel"),
        modules=("pandas.io", "openpyxl", "xlsxwriter", "xlrd"),
        causes=_LOADING,
        way=Way.PROCESS,
        asyncio="Read and write tables in a process pool; pandas holds the GIL for most of it (pyarrow and "
        "polars "
        "release it).",
    ),
    Remedy(
        names=("pd.concat", "pd.merge", "df.groupby", "df.apply", "df.merge", "pd.DataFrame", "df.iterrows"),
        modules=("pandas",),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Run the table's work in a process pool: pandas holds the GIL for much of it.",
    ),
    Remedy(
        modules=("polars", "pyarrow"),
        names=("pl.read_csv", "pl.read_parquet", "pq.read_table"),
        causes=_LOADING,
        way=Way.THREAD,
        asyncio="Run it with `await asyncio.to_thread(...)`, which these packages leave the GIL for; polars "
        "has "
        "`collect_async`.",
    ),
    Remedy(
        names=("np.dot", "np.linalg.svd", "np.linalg.inv", "np.sort", "np.load", "np.einsum", "np.fft.fft"),
        modules=("numpy", "scipy", "numba"),
        causes=_LOADING,
        way=Way.THREAD,
        asyncio="Run it with `await asyncio.to_thread(...)`: numpy's kernels mostly release the GIL; arrays "
        "of objects "
        "do not, and need a process pool.",
    ),
    Remedy(
        names=(
            "Image.open",
            "image.resize",
            "image.save",
            "img.save",
            "img.resize",
            "cv2.imread",
            "cv2.resize",
        ),
        modules=("PIL", "cv2", "skimage", "imageio", "wand", "pyvips"),
        causes=_LOADING,
        way=Way.THREAD,
        asyncio="Work on images with `await asyncio.to_thread(...)`: Pillow and OpenCV release the GIL.",
    ),
    Remedy(
        modules=("sklearn", "xgboost", "lightgbm", "catboost", "statsmodels"),
        names=("model.predict", "model.fit", "clf.predict", "estimator.fit", "pipeline.predict"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Train and predict in a process pool that loads the model once, or in a thread where it "
        "releases "
        "the GIL.",
    ),
    Remedy(
        modules=(
            "torch",
            "tensorflow",
            "keras",
            "jax",
            "onnxruntime",
            "transformers",
            "sentence_transformers",
        ),
        names=("torch.load", "session.run", "torch.save", "model.generate", "model.encode", "pipe"),
        causes=_LOADING | {Cause.LOCK},
        way=Way.THREAD,
        asyncio="Run the model with `await asyncio.to_thread(...)`, one call at a time, or in a serving "
        "process; "
        "`.item()` and `.cpu()` wait for the GPU.",
    ),
    Remedy(
        modules=("spacy", "nltk", "gensim", "tiktoken", "tokenizers"),
        names=("nlp", "encoding.encode", "enc.encode", "nltk.word_tokenize"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Run language processing in a process pool that loads the model once.",
    ),
    Remedy(
        names=("yaml.safe_load", "yaml.load", "yaml.dump", "yaml.safe_dump"),
        modules=("yaml", "ruamel"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Use `yaml.CSafeLoader`, which is ten times faster, or JSON; load configuration once, at "
        "the start.",
    ),
    Remedy(
        names=("toml.loads", "toml.load", "tomlkit.parse"),
        modules=("toml", "tomlkit"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Load configuration once, at the start; the standard `tomllib` is faster.",
    ),
    Remedy(
        names=("template.render", "env.get_template", "render_template", "templates.TemplateResponse"),
        modules=("jinja2", "mako", "django.template", "chameleon"),
        causes=COMPUTING,
        way=Way.PIECES,
        asyncio="Render with jinja2's `enable_async` and `render_async`, page long lists, and keep compiled "
        "templates.",
    ),
    Remedy(
        names=("etree.parse", "etree.fromstring", "etree.tostring", "html.fromstring", "*.xpath"),
        modules=("lxml",),
        causes=_LOADING,
        way=Way.THREAD,
        asyncio="Parse with `await asyncio.to_thread(...)`: lxml releases the GIL while it parses and "
        "serialises.",
    ),
    Remedy(
        modules=("bs4", "html5lib", "markdown", "mistune", "docutils", "pygments", "bleach"),
        names=("BeautifulSoup", "markdown.markdown", "soup.find_all"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Parse markup in a process pool, or with a faster parser (lxml, selectolax).",
    ),
    Remedy(
        modules=("pydantic", "marshmallow", "attr", "cattrs", "jsonschema", "rest_framework"),
        names=(
            "*.model_validate",
            "*.parse_obj",
            "*.model_dump",
            "schema.load",
            "schema.dump",
            "jsonschema.validate",
        ),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Validate less at once: page the data, or use `TypeAdapter` on whole lists; it holds the "
        "GIL.",
    ),
    Remedy(
        modules=("matplotlib", "plotly", "bokeh", "seaborn", "altair"),
        names=("plt.savefig", "fig.savefig", "plt.plot", "fig.to_image"),
        causes=_LOADING,
        way=Way.PROCESS,
        asyncio="Draw plots in a process pool: matplotlib holds the GIL, and pyplot is not thread-safe.",
    ),
    Remedy(
        modules=("reportlab", "fpdf", "weasyprint", "pypdf", "PyPDF2", "pdfminer", "docx", "fitz"),
        names=("canvas.save", "doc.build", "pdf.output", "PdfReader"),
        causes=_LOADING,
        way=Way.PROCESS,
        asyncio="Make and read documents in a process pool.",
    ),
    Remedy(
        modules=("networkx", "sympy", "shapely", "geopandas", "ortools", "pulp"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Run it in a process pool: it computes in Python, or in C with the GIL held.",
    ),
    Remedy(
        modules=("google.protobuf", "avro", "fastavro", "thrift"),
        names=("*.ParseFromString", "*.SerializeToString", "fastavro.reader"),
        causes=COMPUTING,
        way=Way.PROCESS,
        asyncio="Use the package's C back end (protobuf's upb, fastavro), and send smaller messages.",
    ),
    Remedy(
        modules=("babel", "dateutil", "dateparser", "pytz", "arrow", "pendulum"),
        names=("dateutil.parser.parse", "parser.parse", "dateparser.parse"),
        causes=COMPUTING,
        way=Way.PIECES,
        asyncio="Parse dates by a fixed format (`datetime.fromisoformat`): guessing parsers are a hundred "
        "times slower.",
    ),
)
