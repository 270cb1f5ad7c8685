"""The life of a job as a picture, drawn once as SVG that the style sheet colours."""

from typing import Final

from coatcheck.http.docs_markup import Markup

STATES: Final = Markup(
    """\
<figure class="states">
<svg viewBox="0 0 640 196" role="img" aria-labelledby="states-title">
<title id="states-title">A queued job becomes running, and a running one succeeded, failed or cancelled. \
A running job may be queued again. A queued job may be cancelled, or fail when its time is over.</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M0 0 8 4 0 8z" class="tip"/></marker></defs>
<g class="edges">
<path d="M146 88H252" marker-end="url(#tip)"/>
<path d="M252 108H150" marker-end="url(#tip)" class="back"/>
<path d="M376 98H488" marker-end="url(#tip)"/>
<path d="M374 88C430 84 424 46 488 42" marker-end="url(#tip)"/>
<path d="M374 108C430 112 424 150 488 154" marker-end="url(#tip)"/>
<path d="M86 74C104 14 320 20 488 28" marker-end="url(#tip)"/>
<path d="M86 122C104 182 320 176 488 168" marker-end="url(#tip)"/>
</g>
<g class="words">
<text x="200" y="78">a worker takes it</text>
<text x="200" y="126">tried again</text>
</g>
<g class="node"><rect x="24" y="76" width="122" height="44" rx="9"/><text x="85" y="103">queued</text></g>
<g class="node busy"><rect x="256" y="76" width="120" height="44" rx="9"/><text x="316" y="103">running</text></g>
<g class="node"><rect x="492" y="12" width="124" height="44" rx="9"/><text x="554" y="39">cancelled</text></g>
<g class="node good"><rect x="492" y="76" width="124" height="44" rx="9"/><text x="554" y="103">succeeded</text></g>
<g class="node bad"><rect x="492" y="140" width="124" height="44" rx="9"/><text x="554" y="167">failed</text></g>
</svg>
</figure>
"""
)
