// Makes a PNG of Chromium small: 8 bits a pixel, by a palette of its most frequent colours that differ.
'use strict';
const zlib = require('node:zlib');

const COLORS = 128;
const NEAR = 60; // the square of a distance that nobody sees
const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);

const chunks = function* (png) {
    for (let at = 8; at < png.length;) {
        const size = png.readUInt32BE(at);
        yield { type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + size) };
        at += 12 + size;
    }
};

const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]), head = Buffer.alloc(4), tail = Buffer.alloc(4);
    head.writeUInt32BE(data.length);
    tail.writeUInt32BE(zlib.crc32 ? zlib.crc32(body) : crc32(body));
    return Buffer.concat([head, body, tail]);
};

const crc32 = (bytes) => {
    let crc = ~0;
    for (const byte of bytes) {
        crc ^= byte;
        for (let i = 0; i < 8; i++) crc = crc >>> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc >>> 0;
};

const paeth = (a, b, c) => {
    const p = a + b - c, pa = Math.abs(p - a), pb = Math.abs(p - b), pc = Math.abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
};

// Its pixels, 24 bits each, row by row.
const pixelsOf = (png) => {
    const parts = [...chunks(png)], head = parts[0].data;
    const width = head.readUInt32BE(0), height = head.readUInt32BE(4), size = head[9] === 6 ? 4 : 3, line = width * size;
    const raw = zlib.inflateSync(Buffer.concat(parts.filter((part) => part.type === 'IDAT').map((part) => part.data)));
    const rows = Buffer.alloc(line * height), pixels = new Uint32Array(width * height);

    for (let y = 0; y < height; y++) {
        const filter = raw[y * (line + 1)];
        for (let x = 0; x < line; x++) {
            const at = y * line + x, left = x >= size ? rows[at - size] : 0, up = y ? rows[at - line] : 0;
            const corner = x >= size && y ? rows[at - line - size] : 0;
            const guess = [0, left, up, left + up >> 1, paeth(left, up, corner)][filter];
            rows[at] = raw[y * (line + 1) + 1 + x] + guess;
        }
    }
    for (let i = 0; i < pixels.length; i++) pixels[i] = rows[i * size] << 16 | rows[i * size + 1] << 8 | rows[i * size + 2];
    return { width, height, pixels };
};

const distance = (a, b) => ((a >> 16) - (b >> 16)) ** 2 + ((a >> 8 & 255) - (b >> 8 & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;

// The most frequent ones that are not nearly alike: a seldom red stays red.
const choose = (colors) => {
    const palette = [];
    for (const color of colors) {
        if (palette.length === COLORS) break;
        if (palette.every((chosen) => distance(chosen, color) >= NEAR)) palette.push(color);
    }
    return palette;
};

exports.shrink = (png) => {
    const { width, height, pixels } = pixelsOf(png), counts = new Map();

    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) || 0) + 1);
    const palette = choose([...counts].sort((a, b) => b[1] - a[1]).map(([color]) => color));
    const index = new Map([...counts.keys()].map((color) => {
        let best = 0;
        for (let i = 1; i < palette.length; i++) if (distance(palette[i], color) < distance(palette[best], color)) best = i;
        return [color, best];
    }));
    const rows = Buffer.alloc((width + 1) * height), head = Buffer.alloc(13);
    for (let y = 0; y < height; y++)
        for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = index.get(pixels[y * width + x]);
    head.writeUInt32BE(width, 0);
    head.writeUInt32BE(height, 4);
    head.set([8, 3, 0, 0, 0], 8);
    return Buffer.concat([SIGNATURE, chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap((c) => [c >> 16, c >> 8 & 255, c & 255]))),
        chunk('IDAT', zlib.deflateSync(rows, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
};
