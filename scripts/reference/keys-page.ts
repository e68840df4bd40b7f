import { type HowCommon, howCommon } from './how-common.ts';
import { code, page, plain, table, toSection } from './markdown.ts';
import { formsOf, type JsonSchema, placeOf, valueText } from './schema-text.ts';

/** What one map of a file may have. */
interface Section {
  /** Where the map is: `cases[].environment`; empty for the file itself. */
  place: string;
  keys: Keys;
  /** One for each form, if a key has different values in the forms of the map. */
  forms: Keys[];
}

type Keys = Map<string, { schema: JsonSchema; isRequired: boolean }>;

/**
 * The page of all keys of a file, from its JSON Schema: a table for each map.
 *
 * @param counted how common each key is. Throws if it names a key that the file does not have.
 */
export function keysPage(title: string, about: string, schema: JsonSchema, counted?: HowCommon): string {
  const shown: Shown = { placeOfKeys: new Map(), paths: new Set(), counted };
  const parts = tables({ place: '', keys: keysOf([schema]), forms: [] }, shown);
  const lost = [...(counted?.common ?? []), ...(counted?.rare ?? [])].filter(
    (path) => !shown.paths.has(path),
  );
  if (lost.length > 0) throw new Error(`${title}: there is no ${lost.join(', ')}`);
  const counts = counted ? ' `use` says how many of these files need a key.' : '';
  return page(title, `${about}${counts}`, ...parts);
}

interface Shown {
  /** Where the keys of a map are shown, by the keys. */
  placeOfKeys: Map<string, string>;
  paths: Set<string>;
  counted: HowCommon | undefined;
}

/**
 * The section's table, and those of the maps below it. A map that occurs in several places is shown at the
 * first, and the others link to it.
 */
function tables({ place, keys, forms }: Section, shown: Shown): string[] {
  const { placeOfKeys, paths, counted } = shown;
  const below: Section[] = [];
  const rowsOf = (keys: Keys) =>
    [...keys].map(([key, { schema, isRequired }]) => {
      const path = placeOf(place, key);
      paths.add(path);
      const maps = formsOf(schema).filter(({ inner }) => inner.properties !== undefined);
      let link = '';
      if (maps.length > 0) {
        const inside = keysOf(maps.map(({ inner }) => inner));
        const shape = JSON.stringify([...inside]);
        const known = placeOfKeys.get(shape);
        const [{ suffix }] = maps as [(typeof maps)[number]];
        if (known === undefined) {
          placeOfKeys.set(shape, path + suffix);
          below.push({
            place: path + suffix,
            keys: inside,
            forms: differing(maps.map(({ inner }) => inner)),
          });
        }
        link = `: ${toSection(known ?? path + suffix)}`;
      }
      const value = `${valueText(schema)}${link}${isRequired ? ', required' : ''}`;
      return [
        code(key),
        value,
        plain(schema.description ?? ''),
        ...(counted ? [howCommon(counted, path)] : []),
      ];
    });
  const tableOf = (keys: Keys) =>
    table(['key', 'value', 'what it is', ...(counted ? ['use'] : [])], rowsOf(keys));
  return [
    place === '' ? '' : `${place.split('.').length > 2 ? '###' : '##'} ${code(place)}`,
    ...(forms.length === 0
      ? [tableOf(keys)]
      : [
          `One of ${forms.length} forms.`,
          ...forms.flatMap((form) => [`With ${code(nameOf(form))}:`, tableOf(form)]),
        ]),
    ...below.flatMap((section) => tables(section, shown)),
  ];
}

/** The forms of a map, if the value of a key is of another type in each. */
function differing(maps: readonly JsonSchema[]): Keys[] {
  const values = new Map<string, string>();
  const differ = maps.some(({ properties = {} }) =>
    Object.entries(properties).some(([key, schema]) => {
      const known = values.get(key);
      values.set(key, valueText(schema));
      return known !== undefined && known !== valueText(schema);
    }),
  );
  return differ ? maps.map((one) => keysOf([one])) : [];
}

/** The key that a form of a map cannot be without. */
function nameOf(form: Keys): string {
  return [...form].find(([, { isRequired }]) => isRequired)?.[0] ?? '';
}

/** All keys of the forms that a map may take. A key is required if each form requires it. */
function keysOf(forms: readonly JsonSchema[]): Keys {
  const keys: Keys = new Map();
  for (const { properties = {} } of forms)
    for (const [key, schema] of Object.entries(properties)) {
      if (keys.has(key) || schema.deprecated) continue;
      keys.set(key, { schema, isRequired: forms.every(({ required = [] }) => required.includes(key)) });
    }
  return keys;
}
