import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { withModel } from '../../src/suite/add-model.ts';

const model = { wire: ['openai-chat', 'openai-responses'], baseUrl: 'http://127.0.0.1:8000/v1' };
const lines = ['wire: [openai-chat, openai-responses]', 'baseUrl: http://127.0.0.1:8000/v1'];
const at = (spaces: number, name = 'mine') =>
  [`${name}:`, ...lines.map((line) => `  ${line}`)].map((line) => `${' '.repeat(spaces)}${line}\n`).join('');

describe('a model is put into a configuration', () => {
  test('that is empty', () => {
    expect(withModel('', 'mine', model)).toBe(`models:\n${at(2)}`);
  });

  test('that has only comments', () => {
    expect(withModel('# mine\n', 'mine', model)).toBe(`# mine\nmodels:\n${at(2)}`);
  });

  test('without models, whose last line has no end', () => {
    const text = 'concurrency: 2   # cores';
    expect(withModel(text, 'mine', model)).toBe(`${text}\nmodels:\n${at(2)}`);
  });

  test('after its other models, and everything else stays as it was written', () => {
    const begin = `# first
service:   { url: "https://x.example" }   # odd   spaces

models:   # ours

    # the big one
    big:
        wire:   openai-chat
        baseUrl: 'https://big.example/v1'
        headers: {a: b,   c: d}   # kept
`;
    const end = `
# limits
budgets: { trial: { tokens: 10 } }
`;
    expect(withModel(begin + end, 'mine', model)).toBe(begin + at(4) + end);
  });

  test('in place of the model of its name', () => {
    const old = '  mine: { scripted: a.yaml }   # old\n';
    const text = (mine: string) =>
      `models:\n  a: { scripted: a.yaml }\n${mine}  # last\n  b: { scripted: b.yaml }\n`;
    expect(withModel(text(old), 'mine', model)).toBe(text(at(2)));
  });

  test('whose models are empty', () => {
    const text = 'models: # none yet\nconcurrency: 2\n';
    expect(withModel(text, 'mine', model)).toBe(`models: # none yet\n${at(2)}concurrency: 2\n`);
  });

  test('with the ends of lines that the file has', () => {
    const text = 'models:\r\n  a: { scripted: a.yaml }\r\n';
    expect(withModel(text, 'mine', model)).toBe(text + at(2).replaceAll('\n', '\r\n'));
  });

  test('that is written in one line, with its comments', () => {
    const text = withModel(
      '# mine\n{ models: { a: { scripted: a.yaml } }, concurrency: 2 }\n',
      'mine',
      model,
    );
    expect(text).toContain('# mine');
    expect(parse(text)).toEqual({ models: { a: { scripted: 'a.yaml' }, mine: model }, concurrency: 2 });
  });

  test('after a model that ends with a text of several lines', () => {
    const text = 'models:\n  a:\n    scripted: |\n      x\n      y\n\nconcurrency: 2\n';
    expect(parse(withModel(text, 'mine', model))).toEqual({
      ...parse(text),
      models: { ...parse(text).models, mine: model },
    });
  });

  test('after a model that an anchor names', () => {
    const text = 'models:\n  a: &a\n    scripted: a.yaml\n  b: *a\n';
    expect(withModel(text, 'mine', model)).toBe(text + at(2));
  });

  test.each(['~', 'yes', '1', '- a', 'a: b', '#', '"', '\u2028', '__proto__', '*a', 'é'])(
    'named %s',
    (name) => {
      const written = parse(withModel('models:\n  a: { scripted: a.yaml }\n', name, model));
      expect(new Map(Object.entries(written.models))).toEqual(
        new Map(Object.entries({ a: { scripted: 'a.yaml' }, [name]: model })),
      );
    },
  );

  test('whatever it holds and however it is written', () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { maxLength: 3 }));
    const entries = fc.dictionary(fc.string({ minLength: 1 }), value, { maxKeys: 4, noNullPrototype: true });
    const models = fc.dictionary(fc.string({ minLength: 1 }), entries, { maxKeys: 4, noNullPrototype: true });
    const config = fc.record({ a: entries, models, z: entries }, { requiredKeys: [], noNullPrototype: true });
    const form = fc.record({
      indent: fc.integer({ min: 1, max: 6 }),
      collectionStyle: fc.constantFrom('any', 'block', 'flow'),
      lineWidth: fc.constantFrom(0, 80),
    });
    fc.assert(
      fc.property(config, form, fc.string({ minLength: 1 }), (given, written, name) => {
        const text = stringify(given, written);
        const models = { ...given.models, [name]: model };
        expect(parse(withModel(text, name, model))).toEqual({ ...given, models });
      }),
    );
  });
});
