"""What the pages are made of. Text that people gave (job names, users, reasons) is shown as text, never as Markdown."""
