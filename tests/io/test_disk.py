"""Replacing a file in one step."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from duckanon.io.disk import replacing


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("old", "mode", "new"), [(0o600, None, 0o600), (0o644, None, 0o644), (None, 0o644, 0o644)])
def test_a_file_that_is_not_complete_is_readable_by_its_owner_alone(
    tmp_path: Path, old: int | None, mode: int | None, new: int
) -> None:
    path = tmp_path / "file"
    if old is not None:
        path.write_text("old")
        path.chmod(old)
    with replacing(path, mode) as staged:
        staged.write_text("new")
        assert mode_of(staged) == 0o600
    assert (path.read_text(), mode_of(path)) == ("new", new)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("follow", [True, False])
def test_a_link_stays_if_it_is_followed_and_is_replaced_if_not(tmp_path: Path, follow: bool) -> None:
    path, other = tmp_path / "link", tmp_path / "other"
    other.write_text("old")
    path.symlink_to(other)
    with replacing(path, follow=follow) as staged:
        staged.write_text("new")
    assert path.is_symlink() == follow
    assert (path.read_text(), other.read_text()) == ("new", "new" if follow else "old")


def test_if_the_work_fails_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as staged:
            staged.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
