import type { FileIssue } from '../suite/file-issues.ts';
import type { RowSpan } from './swe-bench/rows.ts';
import type { RowSetup } from './swe-bench/setup.ts';
import type { TaskFormat } from './task.ts';

/** A task whose place is known, and which is not read yet. */
export interface FoundTask {
  id: string;
  format: TaskFormat;
  /** The absolute path of its folder, or of the file that has it as a row. */
  place: string;
  row?: RowSpan;
  /** What the person who runs it names, if it is a row. */
  setup?: RowSetup;
  /** What a data set says of its files. */
  expected?: { digest: string; at: FileIssue };
  /** Something that a data set says of it. */
  remark?: FileIssue;
  /** Why it cannot be read. */
  problem?: FileIssue;
  /** Where it would have to be fetched from. */
  absent?: FileIssue;
}
