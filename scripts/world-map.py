#!/usr/bin/env python3
"""Makes src/node/api/page/world.json, the countries that the page's map shows, of Natural Earth's shapes. Its result is in the tree: no build needs this.

    npm pack world-atlas@2 && tar xzf world-atlas-2.*.tgz && pip install pycountry
    scripts/world-map.py package/countries-110m.json package/countries-50m.json > src/node/api/page/world.json

The shapes are Natural Earth's Admin 0 countries (public domain, https://www.naturalearthdata.com), as the npm package world-atlas has them in TopoJSON;
pycountry (data of Debian's iso-codes) has the two letters for a country's number. What is done: projection Equal Earth (B. Savric, T. Patterson, B. Jenny,
2018) about 11 degrees east, so that the edge of the map cuts no country but Antarctica, which is left out; coordinates rounded to a thousandth of the
width. Each country has its label's place `x`, `y` (the centre of its largest part) and its outline `d`, an SVG path with relative steps; countries too small for the
first file have only their place, from the second one. Land without a country's code is `land`."""

import json
import math
import sys

CENTRE, WIDTH = 11.0, 1000.0
A1, A2, A3, A4 = 1.340264, -0.081106, 0.000893, 0.003796
# Natural Earth has them without a number.
BY_NAME = {"Kosovo": "XK"}
LEFT_OUT = {"AQ"}


def project(longitude, latitude):
    """Equal Earth, in radians of the sphere."""
    theta = math.asin(math.sqrt(3) / 2 * math.sin(math.radians(latitude)))
    square = theta * theta
    sixth = square**3
    x = 2 * math.sqrt(3) * math.radians(longitude) * math.cos(theta) / (3 * (9 * A4 * sixth * square + 7 * A3 * sixth + 3 * A2 * square + A1))
    return x, theta * (A1 + A2 * square + sixth * (A3 + A4 * square))


SCALE = WIDTH / (2 * project(180, 0)[0])
# From the north of Greenland to the south of Chile, with a little room.
TOP, BOTTOM = project(0, 84.5)[1], project(0, -57.5)[1]


def place(longitude, latitude):
    x, y = project(longitude, latitude)
    return WIDTH / 2 + x * SCALE, (TOP - y) * SCALE


def decoded(topology):
    """The arcs, in degrees."""
    (kx, ky), (dx, dy) = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for step in arc:
            x, y = x + step[0], y + step[1]
            points.append((x * kx + dx, y * ky + dy))
        yield points


def ring(arcs, numbers):
    points = []
    for number in numbers:
        arc = arcs[number] if number >= 0 else arcs[~number][::-1]
        points += arc[1:] if points else arc
    return points


def about_centre(points):
    """With longitudes from the centre of the map, without jumps; the whole ring at the side where most of it is."""
    turned, last = [], None
    for longitude, latitude in points:
        longitude -= CENTRE
        if last is not None:
            longitude -= 360 * round((longitude - last) / 360)
        turned.append((longitude, latitude))
        last = longitude
    middle = sum(x for x, _ in turned) / len(turned)
    shift = 360 * round(middle / 360)
    # What reaches over the edge by a little ends there.
    return [(min(180.0, max(-180.0, x - shift)), y) for x, y in turned]


def area(points):
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(points, points[1:] + points[:1])) / 2


def centre(points):
    twice = 2 * area(points)
    if abs(twice) < 1e-9:
        return points[0]
    pairs = [(a, b, a[0] * b[1] - b[0] * a[1]) for a, b in zip(points, points[1:] + points[:1])]
    return sum((a[0] + b[0]) * c for a, b, c in pairs) / (3 * twice), sum((a[1] + b[1]) * c for a, b, c in pairs) / (3 * twice)


def outline(points):
    """A closed path with whole steps; none if nothing is left of it."""
    whole = []
    for x, y in points:
        at = (round(x), round(y))
        if not whole or whole[-1] != at:
            whole.append(at)
    if len(whole) > 1 and whole[0] == whole[-1]:
        whole.pop()
    if len(whole) < 3:
        return ""
    text = f"M{whole[0][0]} {whole[0][1]}l"
    steps = [f"{b[0] - a[0]} {b[1] - a[1]}" for a, b in zip(whole, whole[1:])]
    return (text + " ".join(steps) + "z").replace(" -", "-")


def countries(file, codes):
    """Of each country its code, or its name, and its parts: outer ring first, then holes."""
    with open(file, encoding="utf-8") as opened:
        topology = json.load(opened)
    arcs = list(decoded(topology))
    for shape in topology["objects"]["countries"]["geometries"]:
        name = shape["properties"]["name"]
        code = codes.get(shape.get("id")) or BY_NAME.get(name)
        parts = shape.get("arcs", [])
        parts = [parts] if shape["type"] == "Polygon" else parts
        if code not in LEFT_OUT:
            yield code, [[[place(*at) for at in about_centre(ring(arcs, numbers))] for numbers in part] for part in parts]


def main(coarse, fine):
    import pycountry

    codes = {country.numeric: country.alpha_2 for country in pycountry.countries}
    shown, land = {}, ""
    for code, parts in countries(coarse, codes):
        path = "".join(outline(points) for part in parts for points in part)
        if code is None:
            land += path
            continue
        x, y = centre(max((part[0] for part in parts), key=lambda points: abs(area(points))))
        shown[code] = {"x": round(x), "y": round(y), "d": path}
    for code, parts in countries(fine, codes):
        if code is None or code in shown or not parts:
            continue
        x, y = centre(max((part[0] for part in parts), key=lambda points: abs(area(points))))
        shown[code] = {"x": round(x), "y": round(y)}
    rows = [f"{json.dumps(code)}:{json.dumps(shown[code], separators=(',', ':'))}" for code in sorted(shown)]
    source = "Natural Earth, public domain; made by scripts/world-map.py"
    size = f'"width":{round(WIDTH)},"height":{round((TOP - BOTTOM) * SCALE)}'
    print(f'{{"source":"{source}",{size},"land":"{land}","countries":{{\n' + ",\n".join(rows) + "\n}}")


if __name__ == "__main__":
    main(*sys.argv[1:])
