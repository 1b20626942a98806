"""Which videos and audio are handed to decoders: containers that their first bytes name.

FFmpeg takes some texts for videos, and opens the files and addresses that these name: HLS, DASH, IMF, SDP, lists of ffconcat.
It finds them behind ID3 tags, comments and empty lines too, and in what begins like a container (av_probe_input_format3 of
libavformat/format.c; dash_probe, imf_probe, sdp_probe). So a known beginning is not enough: what these three look for may not
come either, where they look.
"""
from __future__ import annotations

import re

TAKEN = ("MP4, QuickTime, Matroska, WebM, AVI, MPEG-TS, MPEG-PS, FLV, ASF, GIF, Ogg, WAV, MP3, AAC (ADTS), FLAC, AIFF, CAF, AU, AMR, "
         "WavPack")
BEGINNINGS = re.compile(b"|".join((
    rb".{4}(?:ftyp|moov|mdat|free|skip|wide|pnot|styp)",  # MP4, QuickTime
    rb"\x1aE\xdf\xa3",  # Matroska, WebM
    rb"(?:RIFF|RIFX|RF64|BW64).{4}(?:AVI |WAVE)",
    rb"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00",  # Wave64
    rb"\x47.{187}\x47|.{4}\x47.{191}\x47",  # MPEG-TS, also with time stamps
    rb"\x00\x00\x01[\xba\xb3]",  # MPEG-PS, a bare MPEG video
    rb"FLV\x01",
    rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c",  # ASF
    rb"GIF8[79]a",
    rb"OggS|fLaC|caff|\.snd|#!AMR|wvpk",
    rb"FORM.{4}AIF[FC]",
    rb"\x00*\xff[\xe0-\xff]",  # MP3, ADTS; some have more zeros behind their tag than it says
)), re.DOTALL)
TAG = re.compile(rb"ID3[^\xff][^\xff](.)([\0-\x7f]{4})", re.DOTALL)  # as ff_id3v2_match has it
MOST_TAGS = 8
PROBED = 1 << 20  # FFmpeg's PROBE_BUF_MAX
XML = (b"<mpd", b"<compositionplaylist")  # looked for up to the first zero, whatever their case
POSTSCRIPT = re.compile(rb"%!PS|\xc5\xd0\xd3\xc6")
SDP = re.compile(rb"\n\r?c=IN IP")


def starts_of(file: bytes) -> list[int]:
    """Where it may start for FFmpeg: at its first byte, and behind each tag. The last is that of what is in it."""
    starts = [0]
    while len(starts) <= MOST_TAGS and (tag := TAG.match(file, starts[-1])):
        a, b, c, d = tag[2]
        has_footer = tag[1][0] & 0x10
        starts.append(tag.end() + (a << 21 | b << 14 | c << 7 | d) + (10 if has_footer else 0))
    return starts


def check_file(kind: str, file: bytes) -> None:
    """ValueError for what is no known container, and for what might lead a decoder to other files, or to run.

    Images are read by Pillow, which is left none of its decoders that start programs: see without_programs().
    """
    if kind == "image":
        if POSTSCRIPT.match(file):
            raise ValueError("PostScript is not taken for an image")
        return
    starts = starts_of(file)
    if not BEGINNINGS.match(file, starts[-1]):
        raise ValueError(f"{'this audio' if kind == 'audio' else 'this video'} is in none of the formats that are taken: {TAKEN}")
    texts = (file[start:start + PROBED].partition(b"\0")[0].lower() for start in starts)
    if any(sign in text for text in texts for sign in XML) or SDP.search(file, 0, PROBED):
        raise ValueError(f"a playlist is not {'audio' if kind == 'audio' else 'a video'}")


def without_programs() -> None:
    """Takes from Pillow what hands images to a program: EPS is PostScript, which Ghostscript runs."""
    try:
        from PIL import Image
    except ImportError:
        return
    Image.init()  # or it would be registered again
    Image.OPEN.pop("EPS", None)
    if "EPS" in Image.ID:
        Image.ID.remove("EPS")
