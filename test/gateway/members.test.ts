import fc from 'fast-check';
import { expect, test } from 'vitest';
import { membersOf } from '../../src/gateway/members.ts';

test('the members of any JSON object are found where they stand, however it is written', () => {
  const space = fc.constantFrom('', ' ', '\n\t', '\r\n  ');
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()),
      fc.boolean(),
      space,
      (object, wide, gap) => {
        const text = gap + JSON.stringify(object, null, wide ? '\t ' : undefined) + gap;
        const bytes = Buffer.from(text);
        const found = membersOf(bytes).map(({ name, start, end }) => [
          name,
          JSON.parse(bytes.toString('utf8', start, end)),
        ]);
        expect(found).toEqual(Object.entries(JSON.parse(text)));
      },
    ),
    { numRuns: 500 },
  );
});

test('a name that is repeated is found each time, also in other spellings', () => {
  const bytes = Buffer.from('{"a":1,"\\u0061":[{"a":"}\\"]"}] , "b" : "\\\\" }');
  expect(membersOf(bytes).map(({ name, start, end }) => `${name}=${bytes.subarray(start, end)}`)).toEqual([
    'a=1',
    'a=[{"a":"}\\"]"}]',
    'b="\\\\"',
  ]);
  expect(membersOf(Buffer.from(' { } '))).toEqual([]);
});
