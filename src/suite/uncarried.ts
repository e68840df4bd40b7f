import type { FileIssue } from './file-issues.ts';
import { type CaseSource, SuiteFile, type VariantSource } from './suite-file.ts';
import { readYamlFile } from './yaml-file.ts';

type Path = (string | number)[];

/**
 * The settings of a suite file that decide how its trials run and that no request to a service can carry, with
 * their positions. `solution` and the names of variants are not among them: no trial uses them. Throws as
 * `readYamlFile` does.
 *
 * @param isSelected whether the variant at this index is started
 */
export function uncarried(file: string, isSelected: (variant: number) => boolean): FileIssue[] {
  const { value, issue } = readYamlFile(file, SuiteFile);
  const paths: Path[] = [
    ...given(value, ['judges', 'artifacts'], []),
    ...value.variants.flatMap((variant, index) =>
      isSelected(index) ? ofVariant(variant, ['variants', index]) : [],
    ),
    ...(value.cases ?? []).flatMap((one, index) => ofCase(one, ['cases', index])),
  ];
  return paths.map((path) => issue(path, 'a request to a service cannot carry this'));
}

function ofVariant(variant: VariantSource, at: Path): Path[] {
  return given(variant, ['profile', 'userModel'], at);
}

function ofCase(one: CaseSource, at: Path): Path[] {
  const { verify, validator } = one;
  const grading: Path[] = [];
  if (typeof verify === 'object') {
    const verifyAt = [...at, 'verify'];
    if (verify.in === 'same') grading.push([...verifyAt, 'in']);
    grading.push(...given(verify, ['keep', 'ignore', 'unexpected'], verifyAt));
  }
  if (validator?.runsIn === 'same') grading.push([...at, 'validator', 'runsIn']);
  if (validator?.onError === 'failed') grading.push([...at, 'validator', 'onError']);
  return [...given(one, ['protected', 'artifacts'], at), ...grading];
}

/** The paths of those keys that have a value. */
function given<Value extends object>(value: Value, keys: (keyof Value & string)[], at: Path): Path[] {
  return keys.filter((key) => value[key] !== undefined).map((key) => [...at, key]);
}
