"""Output for people: offline HTML pages with zoomable traces, and text on the terminal.

Imported by no folder that computes. `tu.report(result, path)` writes a result's page.
"""

from trueup.core.verb_package import make_callable

make_callable(__name__, "show", "report")
