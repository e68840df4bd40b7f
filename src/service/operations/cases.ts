import type { CasesRequest } from '../../contract/catalog.ts';
import type { ListedCase } from '../store/cases.ts';
import type { Call, JsonPieces } from './call.ts';

export function listCases({ stores, principal }: Call, { suite }: CasesRequest): JsonPieces {
  return { pieces: pieces() };

  function* pieces() {
    yield '{"cases":[';
    let last: ListedCase | undefined;
    for (;;) {
      const cases = stores.cases.list(principal.organizationKey, suite, last);
      if (cases.length === 0) break;
      yield `${last ? ',' : ''}${cases.map(({ entry }) => entry).join(',')}`;
      last = cases.at(-1);
      yield undefined;
    }
    yield ']}';
  }
}
