import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { printedText } from '../../src/bounds/anyone.ts';
import { escaped, printableJson } from '../../src/text/escape.ts';
import { table } from '../../src/text/fit.ts';
import { markdownCell } from '../../src/text/markdown.ts';
import { logDestination, Output, plainText } from '../../src/text/output.ts';
import { lines, ours, quoted, stack, styled, text, whole } from '../../src/text/printable.ts';
import { attacks, harmIn, hostileText } from '../hostile/hostile-text.ts';
import { runs } from '../short-tests.ts';

/** Texts of what attacks are made of, and of everything else. */
const foreign = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('::', '##[', '##', ':', '#', '[', '\n', '\r', '\t', ' ', '\\u{', '\\', '--- ', '+++ '),
      fc.constantFrom(...Object.values(attacks)),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''));

describe('a text of others within a line', () => {
  test('is shown so that no two texts look the same', () => {
    const read = (shown: string) =>
      shown.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex) => String.fromCodePoint(Number.parseInt(hex, 16)));
    fc.assert(
      fc.property(foreign, (any) => {
        expect(read(escaped(any))).toBe(any);
      }),
    );
    expect(escaped('a\u200bb')).toBe('a\\u{200b}b');
    expect(escaped('a\\u{200b}b')).toBe('a\\u{5c}u{200b}b');
    expect(escaped('a b')).not.toBe(escaped('a\u00a0b'));
  });

  test('is left alone where all of it is seen', () => {
    for (const seen of [
      'C:\\dir\\file',
      'größer – 中文 · ελλ',
      '😀 ok',
      'Zoë',
      'grep "\\." | wc',
      '# x ## y',
    ])
      expect(plainText(text`x ${seen}`)).toBe(`x ${seen}`);
  });
});

test('whatever is put into lines, blocks, tables and documents: nothing steers, hides, or speaks to a CI system', () => {
  const values = fc.tuple(foreign, foreign, foreign);
  fc.assert(
    fc.property(values, ([a, b, c]) => {
      const written: string[] = [];
      const output = new Output({ write: (characters) => written.push(characters) });
      output.print(a);
      output.print(text`${a}:${b}`);
      output.print(text`  ${styled('red', a)}${b}\n      ${lines(c)}\n    ${quoted(a)}`);
      output.print(whole(b));
      output.print(stack([text`${a} #${b}[x`, text`#${a}`, lines(b), '']));
      const columns = ['one', { right: 'two' }, c];
      output.print(
        table(columns, [
          [a, b, c],
          ['', a],
          [' ', c],
          [text`${a}${b}`, c, a],
        ]),
      );
      output.json({ [a]: [b, { c }] });
      output.log(JSON.stringify({ level: 30, [b]: a, msg: c }));
      output.annotation({ kind: 'error', title: text`${a}`, message: text`1 failed\n${lines(b)}` });
      expect(harmIn(written.join(''), /^::error title=/)).toEqual([]);
    }),
    { numRuns: runs(300) },
  );
});

test('documents for programs have the value unchanged', () => {
  fc.assert(
    fc.property(fc.dictionary(foreign, fc.oneof(foreign, fc.integer())), (value) => {
      expect(JSON.parse(printableJson(JSON.stringify(value, null, 2)))).toEqual(value);
    }),
  );
});

describe('lines of others', () => {
  test('stand behind a bar where a text has several, and where one would begin as no text does', () => {
    expect(plainText('error: a\n::b')).toBe('error: a\n│ ::b');
    expect(plainText('::stop-commands::x')).toBe('│ ::stop-commands::x');
    expect(plainText('  ##[group]x')).toBe('│   \\u{23}\\u{23}[group]x');
    for (const fine of ['/a/b.yaml:1:2: x', './a', '../a', '"quoted"', '- item', '(a) b', '–', '1 result'])
      expect(plainText(fine)).toBe(fine);
    expect(plainText(text`      why: ${lines('one\ntwo')}`)).toBe('      why: one\n      │ two');
  });

  test('are bounded in width and in number', () => {
    const long = plainText('x'.repeat(5_000_000));
    expect(long.length).toBeLessThan(printedText.bytes.line + 50);
    expect(long).toContain('(5000000 characters)');
    const many = plainText(Array.from({ length: 1_000_000 }, (_, index) => `line ${index}`).join('\n'));
    expect(many.split('\n')).toHaveLength(printedText.count.lines + 1);
    expect(many).toContain('999900 lines left out');
    expect(many).toContain('line 999999');
    expect(plainText(whole('a\n'.repeat(500))).split('\n')).toHaveLength(501);
    expect(plainText(text`a ${'y'.repeat(5_000_000)}`).length).toBeLessThan(printedText.bytes.value + 50);
  });

  test('of a log are cut where they are very long, and stay JSON', () => {
    const written: string[] = [];
    const log = logDestination(new Output({ write: (line) => written.push(line) }));
    log.write(
      `${JSON.stringify({ level: 30, reason: 'x'.repeat(5_000_000), list: Array(500_000).fill('y') })}\n`,
    );
    expect(written.join('').length).toBeLessThan(10_000);
    expect(JSON.parse(written.join(''))).toMatchObject({ level: 30, reason: expect.stringContaining('xxx') });
  });
});

test('secrets are taken out before anything is cut or escaped', () => {
  const secret = 'sk\u200b-secret-of-some-length';
  const redact = (any: string) => any.replaceAll(secret, '[redacted]');
  const cutInTheMiddle = `${'x'.repeat(printedText.bytes.value - 5)}${secret}`;
  expect(plainText(text`a ${cutInTheMiddle}`, redact)).not.toContain('sk');
  expect(plainText(secret, redact)).toBe('[redacted]');
});

test('columns of a table are aligned by what a terminal shows, hostile names included', () => {
  const names = [
    'plain',
    '中文名',
    'e\u0301te\u0301',
    '😀',
    'a\u200bb',
    '::stop-commands::x',
    '\u202eabc',
    '##[x]',
  ];
  const rows = plainText(
    table(
      ['name', 'n'],
      names.map((name) => [name, 'N']),
    ),
  )
    .split('\n')
    .slice(1);
  expect(new Set(rows.map((row) => stringWidth(row.slice(0, row.lastIndexOf('N'))))).size).toBe(1);
  expect(new Set(rows).size).toBe(names.length);
});

test('a cell of a step summary has no mark of Markdown, HTML or GitHub in it', () => {
  const attack =
    '| a | <img src=x> [l](http://e.example) ![i](x) @user #12 `c` **b** &lt; \\| https://e.example \n| x';
  const cell = markdownCell(attack, (any) => any);
  const inside = cell.replace(/^<code>|<\/code>$/g, '').replace(/&#\d+;/g, '');
  expect(inside).not.toMatch(/[^\p{L}\p{N} ,-]/u);
  expect(markdownCell(hostileText, (any) => any)).not.toMatch(/[|\n]/);
});

test('only the printer writes to this process’s streams', () => {
  /**
   * Programs that run in sandboxes, whose streams are not the user's; where the streams are handed to the
   * printer; and an export for `-`, which is a file for the next program and stays as it is.
   */
  const others =
    /^src\/(validate\/sandboxed\/|gateway\/relay\/sidecar\/|text\/|export\/write-export\.ts|cli\/(terminal|main|output\/progress)\.ts)/;
  const raw =
    /\bconsole\b\s*[.[]|process\.(stdout|stderr|_rawDebug|emitWarning)|\bstyleText\b|new Printable\b/;
  const root = join(import.meta.dirname, '../..');
  const sources = ['src', 'runners'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  );
  const found = sources
    .filter((file) => /\.(ts|cjs|mjs)$/.test(file) && !others.test(file))
    .filter((file) => raw.test(readFileSync(join(root, file), 'utf8').replace(/^\s*(\*|\/\/).*$/gm, '')));
  expect(found).toEqual([]);
});

test('our own text keeps its lines and its words', () => {
  expect(plainText(ours('Usage: x\n  --json  y'))).toBe('Usage: x\n  --json  y');
});
