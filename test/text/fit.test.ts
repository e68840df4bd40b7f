import fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { fittedLine, fittedName, fittedRows, flowed } from '../../src/text/fit.ts';
import { Output, plainText } from '../../src/text/output.ts';
import { ascii, ours, showsUtf8, text } from '../../src/text/printable.ts';
import { attacks, harmIn, hostileText } from '../hostile/hostile-text.ts';

const foreign = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.constantFrom(...Object.values(attacks), hostileText, '漢字'.repeat(30), '👩‍👩‍👧‍👦'.repeat(9)),
);
const width = fc.integer({ min: 1, max: 120 });

function widest(shown: string): number {
  return Math.max(...shown.split('\n').map((line) => stringWidth(line)));
}

describe('what is fitted', () => {
  test('is never wider than it may be, and is as safe as everything that is printed', () => {
    fc.assert(
      fc.property(foreign, foreign, width, (one, other, columns) => {
        const rows = fittedRows([{ shrinks: true }, {}], [[one, other]], {
          width: columns,
          lead: ours('  … '),
        });
        const flow = flowed([one, other, ours('end')], { width: columns, indent: 2, gap: 1 });
        const all = [rows, flow, fittedLine(text`  ${one}`, columns)];
        for (const content of all) {
          const shown = plainText(content);
          expect(widest(shown)).toBeLessThanOrEqual(columns);
          expect(harmIn(shown)).toEqual([]);
        }
        const name = plainText(text`a: ${fittedName(one, columns)}`);
        expect(stringWidth(name)).toBeLessThanOrEqual(columns + 3);
        expect(harmIn(name)).toEqual([]);
      }),
    );
  });

  test('keeps beginning and end of a name, and the whole name where it fits', () => {
    const name = 'django__django-12345-with-a-long-tail-7';
    expect(plainText(fittedName(name, 39))).toBe(name);
    expect(plainText(fittedName(name, 15))).toBe('django_…-tail-7');
    expect(plainText(fittedName('漢字漢字漢字', 7))).toBe('漢…字');
  });

  test('takes from the widest column first, and keeps the columns aligned', () => {
    const columns = [{ shrinks: true }, { shrinks: true }, { right: true }];
    const rows = [
      ['a-case-with-a-long-name', 'v #0', '5 s'],
      ['short', 'v #1', '1 m 05 s'],
    ];
    expect(plainText(fittedRows(columns, rows, { width: 30, lead: '' })).split('\n')).toEqual([
      'a-case-…g-name  v #0       5 s',
      'short           v #1  1 m 05 s',
    ]);
  });
});

describe('a terminal without UTF-8', () => {
  test('gets marks of ASCII in Offsite’s own words, each as wide as what it stands for', () => {
    let sent = '';
    const write = (characters: string) => (sent += characters);
    const line = text`✓ a · b │ … ○ ✗ × – █░ ${'naïve'}`;
    new Output({ write, isTTY: true }, undefined, { isUtf8: false }).print(line);
    expect(sent).toBe('+ a - b | ~ o x x - =. naïve\n');
    expect(ascii('✓…█')).toHaveLength(3);
  });

  test('is told by its locale, and a pipe is none', () => {
    expect(showsUtf8({ LANG: 'C.UTF-8' }, 'linux')).toBe(true);
    expect(showsUtf8({ LANG: 'de_DE.utf8', LC_ALL: '' }, 'linux')).toBe(true);
    expect(showsUtf8({ LANG: 'en_US.UTF-8', LC_ALL: 'C' }, 'linux')).toBe(false);
    expect(showsUtf8({ LC_CTYPE: 'en_US.ISO-8859-1', LANG: 'en_US.UTF-8' }, 'linux')).toBe(false);
    expect(showsUtf8({}, 'linux')).toBe(false);
    expect(showsUtf8({}, 'darwin')).toBe(true);
    let sent = '';
    new Output({ write: (line) => (sent += line) }, undefined, { isUtf8: false }).print(text`✓ a`);
    expect(sent).toBe('✓ a\n');
  });
});
