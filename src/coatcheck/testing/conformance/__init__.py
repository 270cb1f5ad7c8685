"""The suite every store engine must pass, the same for all of them. (PYTEST_DONT_REWRITE: only its modules.)

A test module of the engine defines the fixture `store_factory` (see `world.StoreFactory`), imports the `Test…`
classes of these modules and is run by pytest. What an engine may do differently it declares as `Capabilities`.
"""

import pkgutil

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))
