import { expect, test } from 'vitest';
import { readTomlFile } from '../../src/tasks/toml-file.ts';
import { eachTaskSet, set } from './each-task-set.ts';

eachTaskSet();

const written = `top = 1
"quoted key".inner = 'x'
list = [
  1,
  { a = 2, b.c = 3 },
]
[one.two]
three = 0x10
day = 2026-01-02
[[many]]
name = "first"
[many.sub]
deep = true
[[many]]
name = """
long"""
`;

test('all values are read, with dates as they are written', () => {
  const { value } = readTomlFile(set.write('a.toml', `\ufeff${written.replaceAll('\n', '\r\n')}`));
  expect(JSON.parse(JSON.stringify(value))).toEqual({
    top: 1,
    'quoted key': { inner: 'x' },
    list: [1, { a: 2, b: { c: 3 } }],
    one: { two: { three: 16, day: '2026-01-02' } },
    many: [{ name: 'first', sub: { deep: true } }, { name: 'long' }],
  });
});

test.each([
  [['top'], '1:1 top'],
  [['quoted key', 'inner'], '2:14 ["quoted key"].inner'],
  [['list', 0], '4:3 list[0]'],
  [['list', 1, 'b', 'c'], '5:14 list[1].b.c'],
  [['one'], '7:2 one'],
  [['one', 'two', 'three'], '8:1 one.two.three'],
  [['many', 0, 'name'], '11:1 many[0].name'],
  [['many', 0, 'sub', 'deep'], '13:1 many[0].sub.deep'],
  [['many', 1], '14:3 many[1]'],
  [['many', 1, 'missing', 'more'], '14:3 many[1].missing.more'],
  [['missing'], '1:1 missing'],
  [['top', 'below', 1], '1:1 top.below[1]'],
  [[], '1:1 '],
])('%j is found', (path, expected) => {
  const { line, column, path: printed } = readTomlFile(set.write('a.toml', written)).issue(path, 'x');
  expect(`${line}:${column} ${printed}`).toBe(expected);
});

test('the time for a key does not grow with the name of its table', () => {
  const keys = Array.from({ length: 2000 }, (_, index) => `a${index} = 1\n`).join('');
  const timeOf = (name: string) => {
    const file = set.write('a.toml', `["${name}"]\n${keys}`);
    // Of the processor: a loaded machine has others take turns.
    const begun = process.cpuUsage();
    readTomlFile(file);
    const { user, system } = process.cpuUsage(begun);
    return user + system;
  };
  timeOf('k');
  const short = timeOf('k');
  expect(timeOf('k'.repeat(20_000))).toBeLessThan(20 * short + 1_000_000);
});
