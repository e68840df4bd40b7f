import type { TrialRecord } from './trial-record.ts';

/** A content that a record names by its hash. */
export interface NamedBlob {
  of: 'artifact' | 'change' | 'environment' | 'service' | 'exchange';
  /** In the record: `changes[2].before`. */
  path: string;
  /** For people. */
  what: string;
  sha256: string;
  byteSize?: number | undefined;
}

/** The contents that a record names, without the workspace that was left. */
export function namedBlobs(record: TrialRecord): NamedBlob[] {
  const { artifacts = [], changes = [], environment = [], services = [], models } = record;
  const named = ({ sha256, ...one }: Omit<NamedBlob, 'sha256'> & { sha256: string | undefined }) =>
    sha256 === undefined ? [] : [{ ...one, sha256 }];
  return [
    ...artifacts.flatMap(({ path, sha256, byteSize }, index) => {
      const what = `the artifact ${JSON.stringify(path)}`;
      return named({ of: 'artifact', path: `artifacts[${index}]`, what, sha256, byteSize });
    }),
    ...changes.flatMap((change, index) =>
      (['before', 'after'] as const).flatMap((side) => {
        const what = `the text of ${JSON.stringify(change.path)} ${side}`;
        const { content: sha256, byteSize } = change[side] ?? {};
        return named({ of: 'change', path: `changes[${index}].${side}`, what, sha256, byteSize });
      }),
    ),
    ...environment.flatMap(({ phase, log: sha256 }, index) =>
      named({ of: 'environment', path: `environment[${index}].log`, what: `the log of ${phase}`, sha256 }),
    ),
    ...services.flatMap(({ name, log: sha256 }, index) =>
      named({ of: 'service', path: `services[${index}].log`, what: `the log of ${name}`, sha256 }),
    ),
    ...(models?.exchanges ?? []).flatMap(({ requestBody, responseBody }, index) => {
      const [path, number] = [`models.exchanges[${index}]`, index + 1];
      const [asked, answer] = [`request ${number} to a model`, `the answer to request ${number}`];
      return [
        ...named({ of: 'exchange', path: `${path}.requestBody`, what: asked, sha256: requestBody }),
        ...named({ of: 'exchange', path: `${path}.responseBody`, what: answer, sha256: responseBody }),
      ];
    }),
  ];
}
