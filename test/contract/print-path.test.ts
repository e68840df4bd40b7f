import fc from 'fast-check';
import { expect, test } from 'vitest';
import { printPath } from '../../src/contract/errors.ts';

for (const [path, printed] of [
  [[], ''],
  [['suite'], 'suite'],
  [['cases', 2, 'validator', 'source'], 'cases[2].validator.source'],
  [[0, 'id'], '[0].id'],
  [['trial', 'events', 3, 'command'], 'trial.events[3].command'],
  [['trial', { _tag: 'symbol', key: 'usage' }], 'trial.usage'],
  [['variables', 'my key'], 'variables["my key"]'],
  [['variables', 'a.b', 'größe', 'x-y'], 'variables["a.b"].größe.x-y'],
  [['variables', '0'], 'variables["0"]'],
  [['variables', ''], 'variables[""]'],
  [['a', { _tag: 'index', at: 1 }], 'a[{"_tag":"index","at":1}]'],
] as const) {
  test(`${JSON.stringify(path)} is printed as ${printed || 'nothing'}`, () => {
    expect(printPath(path)).toBe(printed);
  });
}

test('different paths are printed differently, so that each can be found', () => {
  const path = fc.array(fc.oneof(fc.string(), fc.nat(), fc.constantFrom('a', 'b', 'a.b', 'a[0]', '0')), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(path, path, (one, other) => {
      fc.pre(JSON.stringify(one) !== JSON.stringify(other));
      expect(printPath(one)).not.toBe(printPath(other));
    }),
  );
});
