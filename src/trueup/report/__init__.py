"""What people see: HTML pages that open offline, traces to zoom into, and what the terminal prints.

Sits above everything that computes; nothing below imports it. `tu.report(result, path)` writes a result's page.
"""

from trueup.core.verb_package import make_callable

make_callable(__name__, "show", "report")
