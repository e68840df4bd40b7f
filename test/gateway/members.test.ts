import fc from 'fast-check';
import { expect, test } from 'vitest';
import { membersOf } from '../../src/gateway/members.ts';
import { GatewayRefusal } from '../../src/gateway/room.ts';
import { runs } from '../short-tests.ts';

/** Any value, with the names that decide nothing. */
const value = fc.dictionary(fc.constantFrom('parameters', 'schema'), fc.jsonValue());

test('the members of any JSON object are found where they stand, however it is written', () => {
  const space = fc.constantFrom('', ' ', '\n\t', '\r\n  ');
  const name = fc.stringMatching(/^[a-z][a-z0-9.$]{0,5}$/);
  fc.assert(
    fc.property(fc.dictionary(name, value), fc.boolean(), space, (object, wide, gap) => {
      const text = gap + JSON.stringify(object, null, wide ? '\t ' : undefined) + gap;
      const bytes = Buffer.from(text);
      const found = membersOf(bytes).map(({ name, start, end }) => [
        name,
        JSON.parse(bytes.toString('utf8', start, end)),
      ]);
      expect(found).toEqual(Object.entries(JSON.parse(text)));
    }),
    { numRuns: runs(500) },
  );
});

test('in what only a tool or a schema defines, any names pass, but none twice', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), (object) => {
      const inside = JSON.stringify(object);
      for (const free of ['parameters', 'input_schema', 'metadata']) {
        expect(() => membersOf(Buffer.from(`{"${free}":[${inside}]}`))).not.toThrow();
      }
      const name = JSON.stringify(Object.keys(object)[0] ?? 'a');
      const twice = `{"parameters":{${name}:1,"-":${inside},${name}:2}}`;
      expect(() => membersOf(Buffer.from(twice))).toThrow(/twice, or a similar name/);
    }),
    { numRuns: runs(100) },
  );
});

test('names that mean something to a language are refused', () => {
  for (const name of ['__proto__', '__defineGetter__', '__class__', '____']) {
    expect(() => membersOf(Buffer.from(`{"messages":[{"${name}":{}}]}`))).toThrow(/not a plain name/);
  }
  expect(() => membersOf(Buffer.from('{"messages":[{"__copilotMessageSource":{}}]}'))).not.toThrow();
});

test('whatever bytes come, they are read to their end or refused', () => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ':',
    ',',
    'a',
    '1',
    ' ',
    '"a"',
    '\\u0061',
    '\xff',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const bytes = Buffer.from(pieces.join(''), 'latin1');
      try {
        membersOf(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayRefusal);
      }
    }),
    { numRuns: runs(2000) },
  );
});

test('members are found with their escapes and blanks', () => {
  const bytes = Buffer.from('{"a":1,"\\u0062":[{"a":"}\\"]"}] , "c" : "\\\\" ,"input":[{"id":{}}]}');
  expect(membersOf(bytes).map(({ name, start, end }) => `${name}=${bytes.subarray(start, end)}`)).toEqual([
    'a=1',
    'b=[{"a":"}\\"]"}]',
    'c="\\\\"',
    'input=[{"id":{}}]',
  ]);
  expect(membersOf(Buffer.from(' { } '))).toEqual([]);
});

test('the conversation of openai-responses is no input of a tool', () => {
  expect(() => membersOf(Buffer.from('{"input":[{"Type":1}]}'))).toThrow(/take for "type"/);
  expect(() => membersOf(Buffer.from('{"content":[{"input":{"Type":1}}]}'))).not.toThrow();
});
