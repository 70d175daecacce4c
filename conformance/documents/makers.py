"""Makes 60 documents from random texts, and what a reader sees of them.

makers.py DIRECTORY: each line of output is a JSON object: the file, its lines in order of reading, and lines that stand
beside them (headers, notes, comments). LibreOffice saves some of the documents again in other formats.
"""
import datetime
import json
import os
import random
import subprocess
import sys

import docx
import openpyxl
import pptx
from docx.oxml.ns import qn
from openpyxl.comments import Comment
from openpyxl.styles import Font
from pptx.util import Inches
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import ListFlowable, PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table

WORDS = ("river stone Köln café naïve Ærø Łódź Žižkov Ñandú Привет Москва Ελλάδα well-known re-use co-operate don't "
         "agenda budget meeting offer invoice delivery harbour garden letter window quality measure result").split()
here = os.path.abspath(sys.argv[1])
made = []


class Text:
    """Random words and figures, the same with each run."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def figure(self):
        return self.random.choice([
            lambda: f"{self.random.randint(1, 999999):,}", lambda: f"{self.random.uniform(0, 5000):.2f}",
            lambda: f"{self.random.randint(1, 28):02d}.{self.random.randint(1, 12):02d}.2026",
            lambda: f"{self.random.randint(0, 100)}%",
            lambda: f"+47 {self.random.randint(10, 99)} {self.random.randint(10, 99)}",
            lambda: f"A-{self.random.randint(1000, 9999)}/{self.random.randint(1, 9)}"])()

    def line(self, low=3, high=12):
        return " ".join(self.figure() if self.random.random() < 0.2 else self.random.choice(WORDS)
                        for _ in range(self.random.randint(low, high)))

    def paragraph(self):
        return ". ".join(self.line().capitalize() for _ in range(self.random.randint(1, 6))) + "."

    def cells(self, rows, columns):
        return [[self.line(1, 1) for _ in range(columns)] for _ in range(rows)]


def keep(name, lines, beside=()):
    made.append({"file": name, "lines": lines, "beside": list(beside)})


def by_python_docx(i):
    t, d, lines, beside = Text(f"docx{i}"), docx.Document(), [], []
    for _ in range(t.random.randint(3, 8)):
        heading = t.line(2, 5)
        d.add_heading(heading, t.random.randint(1, 3))
        lines.append(heading)
        for _ in range(t.random.randint(1, 4)):
            style = t.random.choice(["List Bullet", "List Number", None]) if i % 4 else None
            p, text = d.add_paragraph(style=style), t.paragraph()
            lines.append(text)
            while text:  # runs end within words
                n = t.random.randint(1, 20)
                run = p.add_run(text[:n])
                run.bold, run.italic = t.random.choice([True, None]), t.random.choice([True, None])
                text = text[n:]
        if t.random.random() < 0.7:
            cells = t.cells(t.random.randint(2, 5), 4)
            table = d.add_table(len(cells), 4)
            for r, row in enumerate(cells):
                if r == 1:  # its middle is one cell
                    row[2] = ""
                    table.cell(r, 1).merge(table.cell(r, 2))
                for c, text in enumerate(row):
                    if text:
                        table.cell(r, c).text = text
                lines.append(" ".join(row))
    if i % 2:
        beside = [t.line(), t.line()]
        d.sections[0].header.paragraphs[0].text, d.sections[0].footer.paragraphs[0].text = beside
    if i % 3 == 0:
        p = d.add_paragraph("Before the break")
        p.add_run().add_break(docx.enum.text.WD_BREAK.PAGE)
        p.add_run("after it\tand a tab")
        lines.append("Before the break after it and a tab")
    d.save(os.path.join(here, f"{i}.docx"))
    keep(f"{i}.docx", lines, beside)


def by_openpyxl(i):
    t, b, lines, beside = Text(f"xlsx{i}"), openpyxl.Workbook(), [], []
    number = lambda: round(t.random.uniform(-90000, 90000), 3) + 0.0001
    shown = {
        "#,##0.00": lambda v: f"{v:,.2f}", "0.0": lambda v: f"{v:.1f}", "0%": lambda v: f"{v * 100:.0f}%",
        '#,##0" kg"': lambda v: f"{v:,.0f} kg", '0.00;(0.00);"-"': lambda v: f"{v:.2f}" if v > 0 else f"({-v:.2f})",
        '[<1000]0.00;#,##0,"K"': lambda v: f"{v:.2f}" if v < 1000 else f"{v / 1000:,.0f}K",
        "0.00E+00": lambda v: f"{v:.2E}",
        '"No. "0': lambda v: f"{'-' if v < 0 else ''}No. {abs(v):.0f}"}
    dates = {"yyyy-mm-dd": "%Y-%m-%d", "dd/mm/yyyy": "%d/%m/%Y", "d mmm yyyy": "%-d %b %Y",
             "mmmm d, yyyy": "%B %-d, %Y",
             "yyyy-mm-dd hh:mm:ss": "%Y-%m-%d %H:%M:%S", "h:mm AM/PM": "%-I:%M %p", "dddd": "%A"}
    for s in range(t.random.randint(1, 3)):
        w = b.active if s == 0 else b.create_sheet(t.line(1, 1) + str(s))
        for r in range(1, t.random.randint(8, 60)):
            row = []
            for c in range(1, 7):
                cell, kind = w.cell(r, c), t.random.random()
                if kind < 0.15 and c > 1:
                    continue
                if kind < 0.45 or c == 1:
                    cell.value = text = t.line(1, 4)
                elif kind < 0.7:
                    cell.value = v = number()
                    cell.number_format = t.random.choice(list(shown))
                    text = shown[cell.number_format](v)
                elif kind < 0.8:
                    cell.value = v = t.random.choice([t.random.randint(-9999, 9999999), t.random.randint(1, 99) / 8])
                    text = f"{v:g}" if isinstance(v, float) else str(v)
                elif kind < 0.95:
                    v = datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=t.random.randint(-10**9, 10**9))
                    cell.value, cell.number_format = v, t.random.choice(list(dates))
                    text = v.strftime(dates[cell.number_format])
                else:
                    cell.value = t.random.random() < 0.5
                    text = str(cell.value).upper()
                cell.font = Font(bold=t.random.random() < 0.2)
                row.append(text)
            lines.append(" ".join(row))
        if s == 0:
            w["A1"].comment = Comment(t.line(), "Ana")
            beside.append("comment on A1: " + w["A1"].comment.text)
    b.save(os.path.join(here, f"{i}.xlsx"))
    keep(f"{i}.xlsx", lines, beside)


def by_python_pptx(i):
    t, p, lines, beside = Text(f"pptx{i}"), pptx.Presentation(), [], []
    for _ in range(t.random.randint(2, 7)):
        slide = p.slides.add_slide(p.slide_layouts[1])
        slide.shapes.title.text, body = t.line(2, 6), slide.placeholders[1].text_frame
        lines.append(slide.shapes.title.text)
        for n in range(t.random.randint(1, 5)):
            paragraph = body.paragraphs[0] if n == 0 else body.add_paragraph()
            paragraph.level, paragraph.text = t.random.randint(0, 2), t.line()
            lines.append(paragraph.text)
        kind = t.random.random()
        if kind < 0.4:
            cells = t.cells(t.random.randint(2, 4), 3)
            table = slide.shapes.add_table(len(cells), 3, Inches(1), Inches(5), Inches(6), Inches(2)).table
            for r, row in enumerate(cells):
                for c, text in enumerate(row):
                    table.cell(r, c).text = text
                lines.append(" ".join(row))
        elif kind < 0.7:
            group = slide.shapes.add_group_shape()
            for _ in range(2):
                box = group.shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1))
                box.text_frame.text = t.line()
                lines.append(box.text_frame.text)
        if t.random.random() < 0.4:
            slide.notes_slide.notes_text_frame.text = t.line()
            beside.append(slide.notes_slide.notes_text_frame.text)
    p.save(os.path.join(here, f"{i}.pptx"))
    keep(f"{i}.pptx", lines, beside)


def by_reportlab(i):
    pdfmetrics.registerFont(TTFont("DejaVu", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"))
    t, styles, story, lines = Text(f"pdf{i}"), getSampleStyleSheet(), [], []
    for style in styles.byName.values():
        style.fontName = "DejaVu"
    for _ in range(t.random.randint(4, 25)):
        kind = t.random.random()
        if kind < 0.2:
            lines.append(t.line(2, 5))
            story.append(Paragraph(lines[-1], styles["Heading2"]))
        elif kind < 0.7:
            lines.append(t.paragraph())
            story.append(Paragraph(lines[-1], styles["BodyText"]))
        elif kind < 0.85:
            cells = t.cells(t.random.randint(2, 6), 3)
            lines += [" ".join(row) for row in cells]
            story.append(Table(cells, colWidths=150, style=[("FONT", (0, 0), (-1, -1), "DejaVu")]))
        elif kind < 0.95:
            items = [t.line() for _ in range(3)]
            lines += ["• " + item for item in items]
            story.append(ListFlowable([Paragraph(item, styles["BodyText"]) for item in items], bulletType="bullet",
                                      start="•", bulletFontName="DejaVu"))
        else:
            story += [Spacer(1, 20), PageBreak()]
    SimpleDocTemplate(os.path.join(here, f"{i}.pdf"), pagesize=A4).build(story)
    keep(f"{i}.pdf", lines)


def by_office(kind, target, which):
    """Saves documents again with LibreOffice."""
    profile = "-env:UserInstallation=file://" + os.path.join(here, "profile")
    again = os.path.join(here, kind + "2" + target)
    files = [os.path.join(here, f"{i}.{kind}") for i in which]
    subprocess.run(["soffice", profile, "--headless", "--convert-to", target, "--outdir", again] + files,
                   check=True, timeout=600, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for i in which:
        was = next(m for m in made if m["file"] == f"{i}.{kind}")
        beside = [] if target == "pdf" and kind != "docx" else was["beside"]
        keep(f"{kind}2{target}/{i}.{target}", was["lines"], beside)


for n in range(10):
    by_python_docx(n)
    by_openpyxl(n)
    by_python_pptx(n)
    by_reportlab(n)
by_office("docx", "odt", range(5))
by_office("docx", "docx", range(5, 8))
by_office("docx", "pdf", range(0, 10, 4))
by_office("xlsx", "xlsx", range(5))
by_office("pptx", "pptx", range(4))
for m in made:
    print(json.dumps(m))
