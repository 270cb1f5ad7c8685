"""What pydantic finds, as clients are told it."""

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from coatcheck.admission.input_faults import faults_of
from coatcheck.core.jsontext import Json
from coatcheck.core.problems import FieldError


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = ""


def test_a_member_too_many_is_told_in_the_words_of_all_other_bodies() -> None:
    body: Json = {"title": "x", "tit/le": "y"}
    with pytest.raises(ValidationError) as found:
        Strict.model_validate(body)
    assert list(faults_of(found.value, body)) == [FieldError("/tit~1le", "This member is not known.")]
