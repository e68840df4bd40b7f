import { describe, expect, test } from 'vitest';
import { hasPart, partsOfFile, partsOfScript, tellingLines } from '../../src/suite/answer-lines.ts';

const isIn = (text: string, parts: ReturnType<typeof partsOfScript>) =>
  parts.some((part) => text.includes(part.key) && hasPart(tellingLines(text, part.of), part));

const old = `import { sum } from './sum.js';
export function total(items) {
  const prices = items.map((item) => item.price);
  return sum(prices) - 1;
}
debug(total([{ price: 1 }]));
`;
const fixed = old.replace('sum(prices) - 1', 'sum(prices, { rounded: true })');
const patch = `--- a/total.js
+++ b/total.js
@@ -2,5 +2,5 @@
 export function total(items) {
   const prices = items.map((item) => item.price);
-  return sum(prices) - 1;
+  return sum(prices, { rounded: true });
 }
 debug(total([{ price: 1 }]));
`;
const script = `#!/bin/sh\ncd /app\ngit apply << 'EOF'\n${patch}EOF\n`;

describe('lines of a solution in other files', () => {
  test.each([
    ['a patch', partsOfFile('fix.patch', Buffer.from(patch))],
    ['a script with a patch', partsOfScript(script)],
    ['a file', partsOfFile('/solution/total.js', Buffer.from(fixed))],
    ['a script that writes a file', partsOfScript(`cat > total.js << EOF\n${fixed}EOF\n`)],
  ])('%s is found in the fixed file with other blanks and more lines, not in the old file', (_, parts) => {
    expect(isIn(`// old\n${fixed.replaceAll('\n', '\r\n\n').replaceAll('  ', '\t')}more();\n`, parts)).toBe(
      true,
    );
    expect(isIn(old, parts)).toBe(false);
  });

  test.each([
    ['moves', '-a = first(one, two)\n-b = second(a, 12)\n+c = 1\n+a = first(one, two)\n+b = second(a, 12)\n'],
    [
      'indents',
      '-a = first(one, two)\n-b = second(a, 12)\n+if c:\n+  a = first(one, two)\n+  b = second(a, 12)\n',
    ],
    [
      'removes',
      ' a = first(one, two)\n-x = 1\n b = second(a, 12)\n c = third(a, b, [1, 2, 3], { more: 12 })\n',
    ],
  ])('a patch that only %s lines accuses no file that has them', (_, hunk) => {
    const before = 'a = first(one, two)\nb = second(a, 12)\nc = third(a, b, [1, 2, 3], { more: 12 })\n';
    expect(
      isIn(before, partsOfFile('x.patch', Buffer.from(`--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n${hunk}`))),
    ).toBe(false);
  });

  test('usual commands of a project are in its documents too', () => {
    const readme = '# Build\n\n    npm ci && npm test\n    make all\n    pip install -r requirements.txt\n';
    expect(isIn(readme, partsOfScript('pip install -r requirements.txt\n'))).toBe(false);
    expect(isIn(readme, partsOfScript('npm ci && npm test\nmake all\n', 'commands'))).toBe(false);
  });

  test('what is expected may be a part of the input', () => {
    const [part, ...more] = partsOfFile(
      '/tests/expected.txt',
      Buffer.from('a line of the log\nanother line of the log\n'),
    );
    expect(part?.doubtful).toBe(true);
    expect(more).toEqual([]);
  });
});
